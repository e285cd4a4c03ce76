#include "python/pipelab/errors.h"

#include <string>

#include "absl/strings/str_replace.h"

namespace pipelab {
namespace {

// They live as long as the interpreter.
PyObject* error = nullptr;
PyObject* usage_error = nullptr;

}  // namespace

void DefineErrors(pybind11::module_* module) {
  error = PyErr_NewExceptionWithDoc("pipelab.Error", "What pipelab's command line ends with.",
                                    PyExc_Exception, nullptr);
  const auto bases =
      pybind11::make_tuple(pybind11::handle(error), pybind11::handle(PyExc_ValueError));
  usage_error = PyErr_NewExceptionWithDoc("pipelab.UsageError",
                                          "An option or argument that is wrong (exit code 2).",
                                          bases.ptr(), nullptr);
  module->attr("Error") = pybind11::handle(error);
  module->attr("UsageError") = pybind11::handle(usage_error);
}

void ThrowIfError(const absl::Status& status) {
  if (status.ok()) return;
  const std::string line = absl::StrReplaceAll(status.message(), {{"\n", "\\n"}});
  PyErr_SetString(absl::IsInvalidArgument(status) ? usage_error : error, line.c_str());
  throw pybind11::error_already_set();
}

}  // namespace pipelab
