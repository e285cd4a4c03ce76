// Tests of several processes: mpi_test (tools/build_defs/mpi.bzl) starts the program with mpirun,
// this library's main() joins them and runs the tests in each. Process 0 reports; of the others
// only failures are shown.
#ifndef PIPELAB_KERNELS_COMM_MPI_TEST_MAIN_H_
#define PIPELAB_KERNELS_COMM_MPI_TEST_MAIN_H_

#include "kernels/comm/transport.h"

namespace pipelab {

Transport& TestTransport();

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_COMM_MPI_TEST_MAIN_H_
