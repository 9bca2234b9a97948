#pragma once

#include <algorithm>

#include "kernels/common/DeviceTraits.h"
#include "kernels/select/Select.h"
#include "tests/select/SelectCase.h"

namespace faiss_bits::test {

/// The device, as a case wants it to be taken for.
inline DeviceTraits deviceOf(const SelectCase& c) {
    DeviceTraits device = deviceTraits();
    if (c.multiprocessors) {
        device.multiprocessors = c.multiprocessors;
    }
    if (!c.clusters) {
        device.computeCapability = std::min(device.computeCapability, 80);
    }
    if (c.sharedBytes) {
        device.blockSharedBytes = c.sharedBytes;
    }
    return device;
}

/// What a case asks of a plan: no arrays.
inline SelectProblem shapeOf(const SelectCase& c, int k) {
    SelectProblem p;
    p.rows = c.rows;
    p.cols = c.cols;
    p.k = k;
    p.keyType = c.keyType;
    p.algorithm = c.algorithm;
    p.device = deviceOf(c);
    return p;
}

} // namespace faiss_bits::test
