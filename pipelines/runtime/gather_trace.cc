#include "pipelines/runtime/gather_trace.h"

#include <algorithm>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernels/comm/byte_codec.h"
#include "tools/base/status_macros.h"

namespace pipelab {
namespace {

// The bytes of all numbers of a DeviceTrace beside its lists.
void WriteTotals(const DeviceTrace& d, ByteWriter* out) {
  out->Int(d.peak_activation.value()).Int(d.peak_state.value()).Int(d.bytes_sent.value());
  out->Int(d.messages_sent).Int(d.collective_bytes.value()).Int(d.tensor_bytes.value());
  out->Int(d.peak_host.value()).Int(d.host_bytes.value());
}

void ReadTotals(ByteReader* in, DeviceTrace* d) {
  d->peak_activation = Bytes(in->Int());
  d->peak_state = Bytes(in->Int());
  d->bytes_sent = Bytes(in->Int());
  d->messages_sent = in->Int();
  d->collective_bytes = Bytes(in->Int());
  d->tensor_bytes = Bytes(in->Int());
  d->peak_host = Bytes(in->Int());
  d->host_bytes = Bytes(in->Int());
}

// Elements go as they lie in memory.
template <typename T>
void WriteList(const std::vector<T>& list, ByteWriter* out) {
  static_assert(std::is_trivially_copyable<T>::value, "or it does not lie there as a whole");
  out->Int(static_cast<int64_t>(list.size()));
  out->Raw(list.data(), list.size() * sizeof(T));
}

// False where there is no list.
template <typename T>
bool ReadList(ByteReader* in, std::vector<T>* into) {
  const int64_t size = in->Int();
  if (!in->ok() || size < 0 || static_cast<uint64_t>(size) > in->left() / sizeof(T)) return false;
  into->resize(static_cast<size_t>(size));
  in->Raw(into->data(), into->size() * sizeof(T));
  return true;
}

// False also where they are not those of one device.
bool ReadTimes(ByteReader* in, DeviceTrace* d) {
  if (!ReadList(in, &d->spans) || !ReadList(in, &d->order) || !ReadList(in, &d->library_ns) ||
      !ReadList(in, &d->host_copies)) {
    return false;
  }
  const size_t spans = d->spans.size();
  const auto is_instruction = [&](int64_t n) { return n >= 0 && static_cast<size_t>(n) < spans; };
  return (d->order.empty() || d->order.size() == spans) &&
         (d->library_ns.empty() || d->library_ns.size() == spans) &&
         std::all_of(d->order.begin(), d->order.end(), is_instruction) &&
         std::all_of(d->host_copies.begin(), d->host_copies.end(),
                     [&](const HostCopy& copy) { return is_instruction(copy.instruction); });
}

}  // namespace

std::string TraceToBytes(const Trace& trace) {
  std::string bytes;
  ByteWriter out(&bytes);
  out.Int(static_cast<int64_t>(trace.origin)).Int(trace.makespan.value());
  out.Int(static_cast<int64_t>(trace.devices.size()));
  for (const DeviceTrace& d : trace.devices) {
    WriteTotals(d, &out);
    WriteList(d.spans, &out);
    WriteList(d.order, &out);
    WriteList(d.library_ns, &out);
    WriteList(d.host_copies, &out);
  }
  return bytes;
}

absl::StatusOr<Trace> TraceFromBytes(absl::string_view bytes) {
  const auto bad = [] { return absl::DataLossError("what another process sent is not a trace"); };
  ByteReader in(bytes);
  Trace trace;
  const int64_t origin = in.Int();
  if (origin < 0 || origin > static_cast<int64_t>(TraceOrigin::kSimulated)) return bad();
  trace.origin = static_cast<TraceOrigin>(origin);
  trace.makespan = Nanoseconds(in.Int());
  const int64_t devices = in.Int();
  if (devices < 0) return bad();
  for (int64_t d = 0; d < devices; ++d) {
    DeviceTrace device;
    ReadTotals(&in, &device);
    if (!ReadTimes(&in, &device)) return bad();
    trace.devices.push_back(std::move(device));
  }
  if (!in.ok() || in.left() > 0) return bad();
  return trace;
}

absl::StatusOr<Trace> GatherTrace(ProcessGroup& group, Trace trace, int64_t begin_ns,
                                  absl::Duration limit) {
  std::string mine;
  ByteWriter(&mine).Int(begin_ns + group.clock_offset_ns()).Text(TraceToBytes(trace));
  PIPELAB_ASSIGN_OR_RETURN(const std::vector<std::string> all, group.ToFirst(mine, limit));
  if (group.rank() != 0) return trace;
  Trace whole;
  whole.origin = trace.origin;
  std::vector<int64_t> begins;
  std::vector<Trace> parts;
  for (const std::string& bytes : all) {
    ByteReader in(bytes);
    begins.push_back(in.Int());
    PIPELAB_ASSIGN_OR_RETURN(Trace part, TraceFromBytes(in.Text()));
    parts.push_back(std::move(part));
  }
  const int64_t begin = *std::min_element(begins.begin(), begins.end());
  for (size_t p = 0; p < parts.size(); ++p) {
    const int64_t later = begins[p] - begin;
    whole.makespan = std::max(whole.makespan, parts[p].makespan + Nanoseconds(later));
    for (DeviceTrace& device : parts[p].devices) {
      device.AddToTimes(later);
      whole.devices.push_back(std::move(device));
    }
  }
  return whole;
}

}  // namespace pipelab
