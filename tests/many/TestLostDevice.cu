/// What a search says of a device that has gone. A kernel that fails takes its
/// device with it, for the whole process: this is the program's only test.

#include <cstdlib>

#include "tests/many/ManyHarness.h"

namespace faiss_bits::test {
namespace {

/// Processes that share a device by MPS would lose it too. No server has this
/// folder; the driver reads the variable at its first call.
[[maybe_unused]] const int kNoMps =
        setenv("CUDA_MPS_PIPE_DIRECTORY", "/nonexistent", 1);

__global__ void failKernel() {
    asm("trap;");
}

class LostDevice : public GpuTest {
   protected:
    void TearDown() override {} // the device is gone
};

TEST_F(LostDevice, IsNamed) {
    const auto vectors = makeVectors(100, 4, 1);
    // Never destroyed: FAISS ends the process for errors in there.
    auto& many = *new GpuIndexBitsShards(
            placesOf(3), 4, faiss::METRIC_L2, smallConfig());
    many.add(100, vectors.data());
    searchOnHost(many, vectors, 3);
    failKernel<<<1, 1>>>();
    ASSERT_NE(cudaDeviceSynchronize(), cudaSuccess);
    try {
        searchOnHost(many, vectors, 3);
        FAIL() << "nothing was thrown";
    } catch (const faiss::FaissException& error) {
        const std::string text = error.what();
        EXPECT_NE(text.find("CUDA error"), std::string::npos) << text;
    }
    try {
        many.reset();
        FAIL() << "nothing was thrown";
    } catch (const faiss::FaissException& error) {
        const std::string text = error.what();
        EXPECT_NE(text.find("device 0"), std::string::npos) << text;
    }
    EXPECT_EQ(many.ntotal, 100); // nothing has changed
}

} // namespace
} // namespace faiss_bits::test
