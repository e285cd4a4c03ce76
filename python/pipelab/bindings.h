// The parts of the extension module _core, each in a file of its own; python/pipelab/__init__.py
// has what users see.
#ifndef PIPELAB_PYTHON_PIPELAB_BINDINGS_H_
#define PIPELAB_PYTHON_PIPELAB_BINDINGS_H_

#include "pybind11/pybind11.h"

namespace pipelab {

void BindSchedule(pybind11::module_* module);  // schedule_binding.cc
void BindRun(pybind11::module_* module);       // run_binding.cc

}  // namespace pipelab

#endif  // PIPELAB_PYTHON_PIPELAB_BINDINGS_H_
