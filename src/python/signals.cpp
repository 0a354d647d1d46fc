// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ctrl-C, and other signals that Python handles, while a rank waits for others. Python hands over its own functions, so that
// this library is the same for all versions of it. (A callback that is written in Python would not do: a handler that raises
// does so before the callback's first line.)
#include <adasum/core/waiting.hpp>

namespace {

// As in Python's C API: PyGILState_Ensure, PyGILState_Release, PyErr_CheckSignals, PyErr_Fetch.
struct {
  int (*take_gil)() = nullptr;
  void (*give_gil)(int) = nullptr;
  int (*run_handlers)() = nullptr;  // in the main thread; in others it does nothing
  void (*take_exception)(void** type, void** value, void** traceback) = nullptr;
} python;
struct raised_exception {
  void *type = nullptr, *value = nullptr, *traceback = nullptr;
} raised;  // by a handler; guarded by the GIL

bool is_interrupted() {
  const int state = python.take_gil();
  const bool is_raised = python.run_handlers() != 0;
  if (is_raised) python.take_exception(&raised.type, &raised.value, &raised.traceback);
  python.give_gil(state);
  return is_raised;
}

}  // namespace

extern "C" {

/// From now on, waits end when a handler raises an exception.
__attribute__((visibility("default"))) void adasum_python_answer_signals(
    int (*take_gil)(), void (*give_gil)(int), int (*run_handlers)(), void (*take_exception)(void**, void**, void**)) {
  python = {take_gil, give_gil, run_handlers, take_exception};
  adasum::set_interruption_check(is_interrupted);
}

/// That exception, as PyErr_Restore takes it; the type is null if there is none.
__attribute__((visibility("default"))) void adasum_python_take_exception(void** type, void** value, void** traceback) {
  *type = raised.type;
  *value = raised.value;
  *traceback = raised.traceback;
  raised = {};
}

}  // extern "C"
