# shellcheck shell=bash
# How tests call mpirun; they source it. Gives the array mpi_options, and a TMPDIR that is removed at the end.
#
#   source tools/mpi_options.sh
#   mpirun "${mpi_options[@]}" -np 4 program
command -v mpirun >/dev/null || { echo "mpirun is missing: apt-get install -y openmpi-bin" >&2; exit 1; }
# Short: Open MPI makes unix sockets under TMPDIR (limit: 108 characters).
export TMPDIR
TMPDIR=$(mktemp -d /tmp/mpi.XXXXXX)
trap 'rm -rf "$TMPDIR"' EXIT
export HOME=${HOME:-$TMPDIR}
# Processes of this machine alone, more of them than cores, and in a sandbox without ptrace (single copy) or rsh. What
# an mpirun that is killed leaves behind is in TMPDIR, not in /dev/shm.
mpi_options=(--oversubscribe --bind-to none
  --mca btl 'self,vader' --mca btl_vader_single_copy_mechanism none --mca btl_vader_backing_directory "$TMPDIR"
  --mca pml ob1 --mca oob_tcp_if_include lo --mca plm_rsh_agent false)
if [[ $(id -u) -eq 0 ]]; then mpi_options+=(--allow-run-as-root); fi
