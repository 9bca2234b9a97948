#pragma once

#include "kernels/select/threshold/ThresholdPlan.h"
#include "tests/select/SelectHarness.h"

namespace faiss_bits::test {

/// How SampleThreshold takes a case on this device.
inline ThresholdPlan thresholdPlanOf(const SelectCase& c, int k) {
    return planThreshold(shapeOf(c, k));
}

/// Whether clusters of blocks share rows here. Compute capability 12.0 has
/// clusters, but blocks of too little shared memory.
inline bool sharesRows() {
    const DeviceTraits device = deviceTraits();
    return device.computeCapability >= 90 &&
            device.blockSharedBytes >= 200 * 1024;
}

} // namespace faiss_bits::test
