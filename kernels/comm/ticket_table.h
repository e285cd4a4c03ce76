// Operations under way, by ticket: constant time, no allocation in the steady state.
//
//   TicketTable<Operation> table;
//   Operation* op;
//   Ticket t = table.Add(&op);
//   table.Find(t);    // nullptr once removed, also when its place has been taken again
//   table.Remove(t);
#ifndef PIPELAB_KERNELS_COMM_TICKET_TABLE_H_
#define PIPELAB_KERNELS_COMM_TICKET_TABLE_H_

#include <cstdint>
#include <deque>
#include <vector>

#include "kernels/comm/communicator.h"

namespace pipelab {

template <typename T>
class TicketTable {
 public:
  Ticket Add(T** value) {
    if (free_.empty()) {
      free_.push_back(static_cast<uint32_t>(places_.size()));
      places_.emplace_back();
    }
    const uint32_t place = free_.back();
    free_.pop_back();
    places_[place].used = true;
    *value = &places_[place].value;
    return static_cast<Ticket>(places_[place].uses) << 32 | place;
  }

  T* Find(Ticket ticket) {
    const uint64_t place = static_cast<uint64_t>(ticket) & 0xffffffffu;
    if (place >= places_.size()) return nullptr;
    Place& p = places_[place];
    return p.used && p.uses == ticket >> 32 ? &p.value : nullptr;
  }

  void Remove(Ticket ticket) {
    const uint32_t place = static_cast<uint32_t>(ticket);
    places_[place].value = T();
    places_[place].used = false;
    ++places_[place].uses;
    free_.push_back(place);
  }

 private:
  struct Place {
    T value;
    int64_t uses = 0;  // upper half of the ticket: tells a place's users apart
    bool used = false;
  };
  std::deque<Place> places_;  // addresses stay when it grows
  std::vector<uint32_t> free_;
};

}  // namespace pipelab

#endif  // PIPELAB_KERNELS_COMM_TICKET_TABLE_H_
