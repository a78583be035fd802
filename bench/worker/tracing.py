"""How long TensorFlow spent tracing Python into graphs, and how often, whoever asked for it.

Keras 3 hides its train function behind plain Python, so its tracing can't be asked for apart. Every trace of
every `tf.function` goes through one function of TensorFlow, in 2.10 as in 2.21, which is wrapped here: the
outermost calls are timed.
"""

from __future__ import annotations

import inspect
import time
from collections import Counter, deque
from typing import Any

KEPT = 8
"""The latest graphs that are kept to be looked at."""


class Tracing:
    """Counts outermost traces and their seconds from its creation on, and by where the traced function stands.

    Attributes:
        graphs: the latest ones traced.
        by_function: (name, file, line): how often it was traced.
    """

    def __init__(self) -> None:
        from tensorflow.python.framework import func_graph

        self.seconds = 0.0
        self.count = 0
        self.graphs: deque[Any] = deque(maxlen=KEPT)
        self.by_function: Counter[tuple[str, str, int]] = Counter()
        self._depth = 0
        plain = func_graph.func_graph_from_py_func

        def func_graph_from_py_func(*args: Any, **kwargs: Any) -> Any:
            self._depth += 1
            begun = time.perf_counter()
            try:
                graph = plain(*args, **kwargs)
            finally:
                self._depth -= 1
                if not self._depth:
                    self.seconds += time.perf_counter() - begun
                    self.count += 1
                    self._remember(args, kwargs)
            if not self._depth:
                self.graphs.append(graph)
            return graph

        func_graph.func_graph_from_py_func = func_graph_from_py_func

    def _remember(self, args: Any, kwargs: Any) -> None:
        function = kwargs.get("python_func", args[1] if len(args) > 1 else None)
        code = getattr(inspect.unwrap(function), "__code__", None) if callable(function) else None
        if code is not None:
            self.by_function.update([(code.co_name, code.co_filename, code.co_firstlineno)])
