#include "pipelines/ir/program.h"

#include "glog/logging.h"

namespace pipelab {

const char* OpCodeName(OpCode op) {
  switch (op) {
    case OpCode::kCompute:
      return "compute";
    case OpCode::kSend:
      return "send";
    case OpCode::kReceive:
      return "receive";
    case OpCode::kWait:
      return "wait";
    case OpCode::kReduce:
      return "reduce";
    case OpCode::kStep:
      return "step";
  }
  LOG(FATAL) << "no such operation: " << static_cast<int>(op);
}

}  // namespace pipelab
