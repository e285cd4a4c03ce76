// tools/bazel run //experiments:pipelab -- COMMAND
//
// Makes, checks, times, searches and draws pipeline schedules, those of the catalogue and those of
// files; docs/cli.md describes configurations, files and JSON fields. What plans, serves and trains
// is in programs beside it (command_line/beside.h).
#include "experiments/command_line/pipelab_main.h"
#include "tools/base/exhaustion.h"

PIPELAB_HANDLES_EXHAUSTION;

int main(int argc, char** argv) { return pipelab::PipelabMain(argc, argv); }
