// Flags of one study among the many of a program.
//
//   namespace pipelab {
//   namespace {
//   STUDY_FLAG(int, steps, 100, "training steps");           // in the place of ABSL_FLAG
//   absl::Status Run(StudyRun* study) { ... absl::GetFlag(FLAGS_steps) ... }
//   }  // namespace
//   int RunSomeStudy(int argc, char** argv) {
//     RegisterStudyFlags(__FILE__);                          // now it is an option: --steps
//     ...
//   }
//   }  // namespace pipelab
//
// Two studies may have flags of one name: a flag is an absl::Flag of the namespace that it stands
// in, and an option (of ParseFlags, ResolvedFlags, --help; flags.h) once its file's flags have been
// registered. A program registers the files of one study, whose flags have different names.
#ifndef PIPELAB_EXPERIMENTS_STUDY_STUDY_FLAGS_H_
#define PIPELAB_EXPERIMENTS_STUDY_STUDY_FLAGS_H_

#include "absl/base/attributes.h"
#include "absl/flags/flag.h"
#include "absl/strings/string_view.h"

namespace pipelab {

// Makes options of the flags that the file has; again: changes nothing.
void RegisterStudyFlags(absl::string_view file);

// A flag that can be registered, noted before main. For STUDY_FLAG.
class StudyFlagNote {
 public:
  StudyFlagNote(const char* file, void (*register_flag)());
};

}  // namespace pipelab

// What ABSL_FLAG of Abseil's 20220623 release does, but for two things. ABSL_FLAG refuses to stand
// in a namespace, and it registers its flag before main, where the second of a name ends the
// program; there is no public way to register a flag later. Hence the internal names, here alone.
#define STUDY_FLAG(Type, name, default_value, help)                                             \
  ABSL_FLAG_IMPL_DECLARE_DEF_VAL_WRAPPER(name, Type, default_value)                             \
  ABSL_FLAG_IMPL_DECLARE_HELP_WRAPPER(name, help)                                               \
  ABSL_CONST_INIT absl::Flag<Type> FLAGS_##name{                                                \
      ABSL_FLAG_IMPL_FLAGNAME(#name), ABSL_FLAG_IMPL_FILENAME(), ABSL_FLAG_IMPL_HELP_ARG(name), \
      ABSL_FLAG_IMPL_DEFAULT_ARG(Type, name)};                                                  \
  const ::pipelab::StudyFlagNote study_flag_note_##name(                                        \
      __FILE__, [] { absl::flags_internal::FlagRegistrar<Type, true>(FLAGS_##name, __FILE__); })

#endif  // PIPELAB_EXPERIMENTS_STUDY_STUDY_FLAGS_H_
