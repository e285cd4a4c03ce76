// What `pipelab help TOPIC` prints if TOPIC is not a command: one screen of text for each topic.
//
//   for (const Topic& t : Topics()) if (t.name == "units") std::fputs(t.text().c_str(), stdout);
#ifndef PIPELAB_EXPERIMENTS_COMMAND_LINE_TOPICS_H_
#define PIPELAB_EXPERIMENTS_COMMAND_LINE_TOPICS_H_

#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace pipelab {

struct Topic {
  absl::string_view name;     // no command has it
  absl::string_view summary;  // what it is about, for the list of topics
  std::string (*text)();
  absl::string_view command = "";  // whose program knows the text; empty: every one
};

absl::Span<const Topic> Topics();

}  // namespace pipelab

#endif  // PIPELAB_EXPERIMENTS_COMMAND_LINE_TOPICS_H_
