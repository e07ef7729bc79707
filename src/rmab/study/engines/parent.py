"""Worker processes that end with their parent, however that ends: `kill -9` leaves none behind."""

import ctypes
import os
import signal
import sys
import threading
from contextlib import suppress
from multiprocessing import connection, parent_process

SET_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of Linux
LOOK = 1.0  # seconds between looks at who the parent is


def end_with_parent(started_by_main_thread: bool) -> None:
    """See to it that this process, a child of `multiprocessing`, ends when its parent does.

    A thread watches the parent, on all systems. On Linux the system itself ends the process, too, even where compiled code
    keeps all threads waiting; but it looks at the thread that started us, and so this is asked for only if that is the main
    thread, which lasts as long as its process.
    """
    parent = parent_process()
    if parent is None:
        return
    if started_by_main_thread and sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(SET_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    threading.Thread(target=_watch, args=(parent.sentinel, parent.pid), daemon=True).start()


def _watch(sentinel: int, pid: int | None) -> None:
    while not connection.wait([sentinel], LOOK) and (sys.platform == "win32" or os.getppid() == pid):
        pass
    os._exit(1)
