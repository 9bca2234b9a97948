/// Tests of scans on tensor cores that each kernel goes through.
#pragma once

#include <string>

#include "kernels/knn/fused/tensor/TensorScan.h"
#include "tests/common/GpuTest.h"

namespace faiss_bits::test {

/// What stands in the way of a kernel; empty: it has to be there. A device
/// without the instructions (wgmma's are those of 9.0 and of none later), or a
/// build for other architectures alone.
///
/// architectures  of CMake, with commas between them
inline std::string lackFor(
        TensorScanKernel kernel,
        int computeCapability,
        const std::string& architectures = FAISS_BITS_TEST_ARCHITECTURES) {
    const std::string device = "a device of compute capability " +
            std::to_string(computeCapability / 10) + "." +
            std::to_string(computeCapability % 10);
    if (kernel != TensorScanKernel::Wgmma) {
        return computeCapability >= 80
                ? ""
                : device + " has no mma.sync for the kernel: 8.0 is the first";
    }
    if (computeCapability != 90) {
        return device + " has no wgmma: 9.0 alone has it";
    }
    const std::string list = "," + architectures;
    const bool isBuilt = list.find(",90") != std::string::npos ||
            list.find(",all") != std::string::npos;
    return isBuilt ? ""
                   : "the build is for architectures " + architectures +
                    " and so without wgmma";
}

inline std::string kernelName(
        const ::testing::TestParamInfo<TensorScanKernel>& info) {
    return info.param == TensorScanKernel::Wgmma ? "Wgmma" : "MmaSync";
}

/// Skips, by name, where the kernel cannot be; where it can and is not there,
/// fails.
class TensorKernelTest
        : public GpuTest,
          public ::testing::WithParamInterface<TensorScanKernel> {
   public:
    static auto kernels() {
        return ::testing::Values(
                TensorScanKernel::Wgmma, TensorScanKernel::MmaSync);
    }

   protected:
    std::string lack() const override {
        return lackFor(GetParam(), deviceTraits().computeCapability);
    }

    void prepare() override {
        ASSERT_TRUE(hasTensorScan(GetParam(), deviceTraits()))
                << "the kernel is missing";
    }
};

} // namespace faiss_bits::test
