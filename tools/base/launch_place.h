// Which of the processes that were started together this one is, before anything is joined.
//
//   if (PlaceFromEnvironment().process == 0) std::fprintf(stderr, "...");
#ifndef PIPELAB_TOOLS_BASE_LAUNCH_PLACE_H_
#define PIPELAB_TOOLS_BASE_LAUNCH_PLACE_H_

namespace pipelab {

struct LaunchPlace {
  int process = 0, processes = 1;
  bool one_host = true;  // all of them are on this one
};

// What the launcher (mpirun, srun --mpi=pmix) says in the environment; 0 of 1 when there is none.
LaunchPlace PlaceFromEnvironment();

}  // namespace pipelab

#endif  // PIPELAB_TOOLS_BASE_LAUNCH_PLACE_H_
