#include "kernels/cpu/Targets.h"

#include <hwy/highway.h>

#include <cstdlib>

#include "kernels/common/Error.h"

namespace faiss_bits::cpu {

namespace {

int64_t availableTargets() {
    // Asked once: every call asks the processor, which takes microseconds.
    static const int64_t targets = hwy::SupportedTargets() & HWY_TARGETS;
    return targets;
}

int64_t lowestBit(int64_t bits) {
    return bits & -bits;
}

} // namespace

std::string nameOfTarget(int64_t target) {
    return hwy::TargetName(target);
}

std::vector<std::string> targetNames() {
    // Highway numbers its targets from the best on.
    std::vector<std::string> names;
    for (int64_t bits = availableTargets(); bits; bits &= bits - 1) {
        names.push_back(nameOfTarget(lowestBit(bits)));
    }
    return names;
}

int64_t targetOf(const std::string& name) {
    std::string wanted = name;
    const char* source = "target";
    if (wanted.empty()) {
        if (const char* value = std::getenv("FAISS_BITS_CPU_TARGET")) {
            wanted = value;
            source = "FAISS_BITS_CPU_TARGET";
        }
    }
    const int64_t available = availableTargets();
    if (wanted.empty()) {
        return lowestBit(available);
    }
    std::string names;
    for (int64_t bits = available; bits; bits &= bits - 1) {
        const int64_t target = lowestBit(bits);
        if (nameOfTarget(target) == wanted) {
            return target;
        }
        names += (names.empty() ? "" : ", ") + nameOfTarget(target);
    }
    throw Error(formatMessage(
            "%s '%s' is not an instruction set that is compiled in and that "
            "this machine has: %s",
            source,
            wanted.c_str(),
            names.c_str()));
}

} // namespace faiss_bits::cpu
