"""Cuts the network off in each Python process that starts with this folder first on PYTHONPATH.

Python imports a module of this name by itself at start. Loopback and Unix sockets go on working,
so a kernel can talk to its notebook; any other address, and any look-up of a name, is refused with
an OSError and written down in the file that COURSE_OFFLINE_RECORD names, so that code which
swallows the error is still found out. An audit hook sees every use of Python's sockets, needs no
import of `socket`, and cannot be taken off again by a library.
"""

import os
import sys

# Audit events, each with the position of the argument that holds the address or the host name.
WATCHED = {
    "socket.connect": 1,
    "socket.sendto": 1,
    "socket.sendmsg": 1,
    "socket.getaddrinfo": 0,
    "socket.gethostbyname": 0,
    "socket.gethostbyaddr": 0,
}


def _refuse_the_network(event, arguments):
    if event not in WATCHED:
        return
    address = arguments[WATCHED[event]]
    if isinstance(address, tuple) and address:
        address = address[0]
    elif event in ("socket.connect", "socket.sendto", "socket.sendmsg"):
        return  # A Unix socket's path, or no address at all: nothing leaves the machine.
    host = address.decode("ascii", "replace") if isinstance(address, bytes) else address
    if not isinstance(host, str) or _is_this_machine(host):
        return
    sentence = f"The network is cut off while the course is tested; this code asked for {host!r}."
    record = os.environ.get("COURSE_OFFLINE_RECORD")
    if record:
        with open(record, "a", encoding="utf-8") as file:
            file.write(f"{event} {host}\n")
    raise OSError(sentence)


def _is_this_machine(host):
    host = host.lower().rstrip(".")
    if host in ("", "localhost", "0.0.0.0", "::") or host.endswith(".localhost"):
        return True
    import ipaddress
    import platform

    try:
        return ipaddress.ip_address(host.removeprefix("::ffff:").partition("%")[0]).is_loopback
    except ValueError:
        name = platform.node().lower()
        return host in (name, f"{name}.local")


def _run_the_one_this_hides():
    """Run the sitecustomize that Python would have found without this folder, if there is one."""
    from importlib.machinery import PathFinder
    from importlib.util import module_from_spec

    here = os.path.dirname(os.path.abspath(__file__))
    others = [folder for folder in sys.path if os.path.abspath(folder) != here]
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec and spec.loader:
        spec.loader.exec_module(module_from_spec(spec))


sys.addaudithook(_refuse_the_network)
_run_the_one_this_hides()
