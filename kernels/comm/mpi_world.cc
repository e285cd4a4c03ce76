#include "kernels/comm/mpi_world.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace pipelab {
namespace {

// Half of the tags that MPI promises on every implementation worth the name (Open MPI: 2^31 - 1;
// the start checks it).
constexpr int kTags = 1 << 29;

MpiWorld* g_world = nullptr;

}  // namespace

absl::Status MpiError(const char* call, int code) {
  char text[MPI_MAX_ERROR_STRING];
  int size = 0;
  MPI_Error_string(code, text, &size);
  return absl::UnavailableError(
      absl::StrCat(call, ": ", absl::string_view(text, static_cast<size_t>(size))));
}

absl::StatusOr<MpiWorld*> MpiWorld::Start() {
  if (g_world != nullptr) return g_world;
  int provided = 0;
  int code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
  if (code != MPI_SUCCESS) return MpiError("MPI_Init_thread", code);
  if (provided < MPI_THREAD_SERIALIZED) {
    return absl::FailedPreconditionError(
        "this MPI does not let several threads take turns (MPI_THREAD_SERIALIZED)");
  }
  auto* world = new MpiWorld;
  code = MPI_Comm_dup(MPI_COMM_WORLD, &world->comm_);
  if (code != MPI_SUCCESS) return MpiError("MPI_Comm_dup", code);
  MPI_Comm_set_errhandler(world->comm_, MPI_ERRORS_RETURN);
  MPI_Comm_rank(world->comm_, &world->rank_);
  MPI_Comm_size(world->comm_, &world->size_);
  void* most = nullptr;
  int known = 0;
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &most, &known);
  if (known == 0 || *static_cast<int*>(most) < 2 * kTags - 1) {
    return absl::FailedPreconditionError(
        absl::StrCat("this MPI's largest tag is below ", 2 * kTags - 1));
  }
  g_world = world;
  return world;
}

void MpiWorld::End() {
  if (g_world == nullptr) return;
  MPI_Comm_free(&g_world->comm_);
  MPI_Finalize();
}

Rendezvous MpiWorld::rendezvous() {
  return [this](int rank, const std::string& text_of_0) -> absl::StatusOr<std::string> {
    std::string text = rank == 0 ? text_of_0 : "";
    int64_t size = static_cast<int64_t>(text.size());
    int code = MPI_Bcast(&size, 1, MPI_INT64_T, 0, comm_);
    if (code != MPI_SUCCESS) return MpiError("MPI_Bcast", code);
    text.resize(static_cast<size_t>(size));
    code = MPI_Bcast(&text[0], static_cast<int>(size), MPI_BYTE, 0, comm_);
    if (code != MPI_SUCCESS) return MpiError("MPI_Bcast", code);
    return text;
  };
}

int MpiWorld::NextTag() {
  next_tag_ = (next_tag_ + 1) % kTags;
  return next_tag_;
}

int MpiWorld::HeadTag(int64_t run) { return kTags + static_cast<int>(run % kTags); }

}  // namespace pipelab
