"""What `python course.py lab` tells JupyterLab."""

from pathlib import Path

c = get_config()  # noqa: F821 (JupyterLab provides it)

c.LabApp.default_url = "/lab/tree/notebooks/00_start_here.ipynb"
c.LabApp.app_settings_dir = str(Path(__file__).resolve().parent / "settings")
c.LabApp.news_url = None
# Only warnings, so that the address to open is not lost among notices.
c.Application.log_level = "WARN"
