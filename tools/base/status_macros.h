// PIPELAB_RETURN_IF_ERROR and PIPELAB_ASSIGN_OR_RETURN: early return of an absl::Status.
//
//   absl::Status Load(absl::string_view path) {
//     PIPELAB_ASSIGN_OR_RETURN(std::string text, ReadFile(path));
//     PIPELAB_RETURN_IF_ERROR(Check(text));
//     return absl::OkStatus();
//   }
#ifndef PIPELAB_TOOLS_BASE_STATUS_MACROS_H_
#define PIPELAB_TOOLS_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define PIPELAB_RETURN_IF_ERROR(expr)                \
  do {                                               \
    ::absl::Status pipelab_status = (expr);          \
    if (!pipelab_status.ok()) return pipelab_status; \
  } while (false)

#define PIPELAB_STATUS_CONCAT_INNER(a, b) a##b
#define PIPELAB_STATUS_CONCAT(a, b) PIPELAB_STATUS_CONCAT_INNER(a, b)

#define PIPELAB_ASSIGN_OR_RETURN(lhs, expr) \
  PIPELAB_ASSIGN_OR_RETURN_IMPL(PIPELAB_STATUS_CONCAT(pipelab_or_, __LINE__), lhs, expr)

#define PIPELAB_ASSIGN_OR_RETURN_IMPL(var, lhs, expr) \
  auto var = (expr);                                  \
  if (!var.ok()) return std::move(var).status();      \
  lhs = *std::move(var)

#endif  // PIPELAB_TOOLS_BASE_STATUS_MACROS_H_
