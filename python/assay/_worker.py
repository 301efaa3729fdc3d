"""A worker of the program: `assay run --backend python:MODULE:NAME` runs this file, without the package around it.

The extension forks first, and then, in the process that serves, imports the package and the module of the function.
"""

import importlib
import importlib.machinery
import importlib.util
import os
import sys


def extension():
    """The extension, by itself: NumPy, which the package imports, may start threads, and a process that forks should have one."""
    folder = os.path.dirname(os.path.abspath(__file__))
    spec = importlib.machinery.PathFinder.find_spec("_assay", [folder])
    if spec is None:
        sys.exit(f"{folder} has no extension _assay")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules["assay._assay"] = module
    return module


def load(name):
    """The backend of python:MODULE:NAME or ffi:LIBRARY:SYMBOL."""
    kind, module, attribute = name.split(":")
    if kind == "ffi":
        from assay import ffi

        return served_as(ffi.kernel(module, attribute))
    found = importlib.import_module(module)
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise AttributeError(f"module {module} has no '{attribute}'")
        found = getattr(found, part)
    from assay.kernel import Kernel

    if not isinstance(found, Kernel) and not callable(found):
        raise TypeError(f"{module}:{attribute} is {type(found).__name__}: expected a function, or an assay.Kernel")
    return served_as(found if isinstance(found, Kernel) else Kernel(found))


def served_as(kernel):
    """A kernel as the backend of this process."""
    from assay._backend import FunctionBackend

    backend = FunctionBackend(kernel, kernel.memory)
    backend.names_places = True
    return backend


if __name__ == "__main__":
    served = extension()
    if os.environ.pop("ASSAY_PROTOCOL", None) != served.protocol():
        sys.exit(f"the package assay {served.__version__} of {sys.executable} and the program assay are of different versions: "
                 f"install the package of the same checkout")
    sys.path.insert(0, os.getcwd())
    sys.exit(served.serve(["assay", *sys.argv[1:]], load))
