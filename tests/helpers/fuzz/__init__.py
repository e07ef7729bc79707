"""Fuzzing: random problems, logs, lists, files, processes and arguments, checked by code that does not trust the library.

`python tests/helpers/fuzz --minutes 3` plays cases of all parts in turn, each in a worker process with a limit on time and
memory, and keeps what it has done in a folder, so that the next call goes on. A case is a part and a seed, and nothing else.
"""
