// Lists of a published table's rows.
//
//   PIPELAB_ASSIGN_OR_RETURN(paper.rows, ReadAll(file, "rows", ReadRow));
#ifndef PIPELAB_EXPERIMENTS_PUBLISHED_READ_ALL_H_
#define PIPELAB_EXPERIMENTS_PUBLISHED_READ_ALL_H_

#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tools/base/json_object.h"
#include "tools/base/status_macros.h"

namespace pipelab {

// Each object of the list `key`, by `read`; the first error ends it.
template <typename Row>
absl::StatusOr<std::vector<Row>> ReadAll(const JsonObject& file, absl::string_view key,
                                         absl::StatusOr<Row> (*read)(const JsonObject&)) {
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<JsonObject> objects, file.Objects(key));
  std::vector<Row> rows;
  for (const JsonObject& object : objects) {
    PIPELAB_ASSIGN_OR_RETURN(rows.emplace_back(), read(object));
  }
  return rows;
}

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_PUBLISHED_READ_ALL_H_
