"""What `python course.py lab` tells JupyterLab."""

import warnings
from pathlib import Path

from coursekit.notebooks import settle

c = get_config()  # noqa: F821 (JupyterLab provides it)

c.LabApp.default_url = "/lab/tree/notebooks/00_start_here.ipynb"
c.LabApp.app_settings_dir = str(Path(__file__).resolve().parent / "settings")
c.LabApp.news_url = None
c.LabApp.workspaces_dir = str(Path(__file__).resolve().parent / "workspaces")
# Only warnings, so that the address to open is not lost among notices.
c.Application.log_level = "WARN"


def leave_unchanged(model, **_):
    """Opening a notebook must not change its file, or the next `git pull` stumbles over it."""
    if model["type"] == "notebook" and model.get("content"):
        settle(model["content"])


c.FileContentsManager.pre_save_hook = leave_unchanged
# The server sets its hooks twice and warns about the second time.
warnings.filterwarnings("ignore", message="Overriding existing pre_save_hook")
