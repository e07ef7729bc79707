"""Compiled functions that call each other: machine code is made only of those that Python calls.

Numba optimises every function by itself, wraps it so that Python and C can call it, and makes machine code of it; then it
does so again for everything that calls it. Of a function that compiled code calls, only its LLVM code is needed, which is
linked into the caller and optimised there: the rest is most of the time that compiling takes. So a `Dispatcher` that is
compiled for another one stops there (an inner function). Should Python call it, too, it is compiled in full.
"""

from __future__ import annotations

from typing import Any

from numba.core import compiler, sigutils
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import _FunctionCompiler  # type: ignore[attr-defined]
from numba.core.event import trigger_event
from numba.core.registry import CPUDispatcher
from numba.core.types import unliteral  # type: ignore[attr-defined]


class InnerLibrary(JITCodeLibrary):  # type: ignore[misc]
    """LLVM code that is linked into others, and never run by itself: neither optimised nor made into machine code."""

    def _optimize_final_module(self) -> None:
        """Leave that to who links it."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


class InnerFunction:
    """Stands for the entry point that an inner function does not have."""


class InnerCompiler(_FunctionCompiler):  # type: ignore[misc]
    """Compiles a function, in full or as an inner one."""

    def compile_inner(self, args: Any) -> Any:
        """Return the result for these types: LLVM code to be linked, without machine code and wrappers."""
        context, name = self.targetdescr.target_context, self.py_func.__qualname__
        flags = compiler.Flags()
        self.targetdescr.options.parse_as_flags(flags, self.targetoptions)
        flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        made = compiler.compile_extra(
            self.targetdescr.typing_context,
            context,
            self.py_func,
            args=args,
            return_type=None,
            flags=flags,
            locals=self.locals,
            library=InnerLibrary(context.codegen(), name),
            pipeline_class=self.pipeline_class,
        )
        result = made._replace(entry_point=InnerFunction())
        context.insert_user_function(result.entry_point, result.fndesc, [result.library])
        return result


class Dispatcher(CPUDispatcher):  # type: ignore[misc]
    """A compiled function."""

    def __init__(self, py_func: Any, locals: Any = None, targetoptions: Any = None, **rest: Any) -> None:
        super().__init__(py_func, locals, targetoptions, **rest)
        own: Any = getattr(self, "_compiler")  # noqa: B009  (its type cannot be told)
        self._compiler = InnerCompiler(own.py_func, own.targetdescr, own.targetoptions, own.locals, own.pipeline_class)
        self._inner: set[Any] = set()  # the types for which there is an inner function only
        self._linking = False

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """Compile for compiled code that calls it with these types, as an inner function unless there is one in full."""
        args = tuple(map(unliteral, self._compiler.fold_argument_types(args, kws)[1]))  # 0 and 1 are but whole numbers
        if args not in self.overloads:
            self._compile_inner(args)
        self._linking = True  # who compiles holds the lock of the compiler
        try:
            return super().get_call_template(args, {})
        finally:
            self._linking = False

    def compile(self, sig: Any) -> Any:
        """Compile in full for these types: Python calls it."""
        with global_compiler_lock:
            types = tuple(sigutils.normalize_signature(sig)[0])
            if types in self._inner and not self._linking:
                self._inner.discard(types)
                del self.overloads[types]
            return super().compile(sig)

    def _compile_inner(self, types: Any) -> None:
        with self._compiling_counter, trigger_event("numba:compile", data={"dispatcher": self, "args": types}):
            self.overloads[types] = self._compiler.compile_inner(types)  # Python does not get to see it
        self._inner.add(types)
