#include "deepinfer/status.h"

#include "base/check.h"

namespace deepinfer {

int exit_code(Code code) {
  switch (code) {
    case Code::kInvalidArgument:
    case Code::kIo:
      return 2;
    case Code::kBadModelFile:
      return 3;
    case Code::kOutOfCapacity:
      return 4;
    case Code::kDeviceLost:
      return 5;
  }
  DI_CHECK(false);
}

std::string_view code_name(Code code) {
  switch (code) {
    case Code::kInvalidArgument:
      return "invalid_argument";
    case Code::kBadModelFile:
      return "bad_model_file";
    case Code::kOutOfCapacity:
      return "out_of_capacity";
    case Code::kDeviceLost:
      return "device_lost";
    case Code::kIo:
      return "io";
  }
  DI_CHECK(false);
}

}  // namespace deepinfer
