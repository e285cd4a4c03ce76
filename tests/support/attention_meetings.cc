#include "tests/support/attention_meetings.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"

namespace pipelab {

AttentionMeetings::AttentionMeetings(const Program& program)
    : p_(program), device_(program.exchanges.size(), -1) {
  const auto size = static_cast<int32_t>(p_.exchanges.size());
  for (int d = 0; d < static_cast<int>(p_.instructions.size()); ++d) {
    for (const Instruction& i : p_.instructions[d]) {
      if (i.op != OpCode::kCompute || i.arg < 0) continue;
      const std::string name = absl::StrCat("device ", d, ": ", ToString(i.action));
      if (i.arg >= size || p_.exchanges[i.arg].action != i.action) {
        wrong_ =
            absl::StrCat(name, " has exchange ", i.arg, " of ", size, ", which is not its own");
        return;
      }
      std::vector<int>& devices = devices_[p_.exchanges[i.arg].slot];
      if (device_[i.arg] >= 0 || (!devices.empty() && devices.back() == d)) {
        wrong_ = absl::StrCat(name, " meets itself in exchange ", i.arg);
        return;
      }
      device_[i.arg] = d;
      devices.push_back(d);
    }
  }
}

std::string AttentionMeetings::Check() const {
  if (!wrong_.empty()) return wrong_;
  // Slot, giver, helper, first chunk, chunks.
  std::multiset<std::tuple<int, int, int, int, int>> given, received;
  for (size_t e = 0; e < p_.exchanges.size(); ++e) {
    const PassExchange& pass = p_.exchanges[e];
    if (device_[e] < 0) {
      return absl::StrCat("exchange ", e, " of ", ToString(pass.action), " is on no device");
    }
    for (const ChunkShare& s : pass.given) {
      given.emplace(pass.slot, device_[e], s.device, s.first, s.count);
    }
    for (const ChunkShare& s : pass.received) {
      received.emplace(pass.slot, s.device, device_[e], s.first, s.count);
    }
  }
  const auto [gives, receives] =
      std::mismatch(given.begin(), given.end(), received.begin(), received.end());
  if (gives == given.end() && receives == received.end()) return "";
  const auto& [slot, giver, helper, first, count] =
      receives == received.end() || (gives != given.end() && *gives < *receives) ? *gives
                                                                                 : *receives;
  return absl::StrCat("chunks ", first, " to ", first + count - 1, " from device ", giver, " to ",
                      helper, " in slot ", slot, " are not given and received");
}

}  // namespace pipelab
