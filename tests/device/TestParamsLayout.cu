/// Kernels read the members of their parameters where the host has written
/// them: kernels/common/Layout.h says what went wrong.

#include <gtest/gtest.h>

#include "kernels/select/threshold/ThresholdParams.h"
#include "kernels/survivors/SurvivorSortParams.h"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/GpuTest.h"

namespace faiss_bits::test {
namespace {

constexpr int kMembers = 10;

template <class Params>
__host__ __device__ void readMembers(const Params& p, int64_t* out) {
    out[0] = p.rowStride;
    out[1] = p.cols;
    out[2] = p.vectorLoads;
    out[3] = p.outStride;
    out[4] = p.idOffset;
    out[5] = p.k;
    out[6] = p.emptyNanFrom;
    out[7] = p.firstRow;
    out[8] = int64_t(p.ids64);
    out[9] = p.capacity;
}

template <class Params>
__global__ void readKernel(
        const __grid_constant__ Params params,
        int64_t* out) {
    readMembers(params, out);
}

template <class Params>
class ParamsLayout : public GpuTest {};
using AllParams =
        ::testing::Types<ThresholdParams, FinishParams, SurvivorSortParams>;
TYPED_TEST_SUITE(ParamsLayout, AllParams);

TYPED_TEST(ParamsLayout, SmallKernelsReadWhatTheHostWrote) {
    TypeParam p;
    p.rowStride = 11;
    p.cols = 12;
    p.vectorLoads = 1;
    p.outStride = 13;
    p.idOffset = 14;
    p.k = 15;
    p.emptyNanFrom = 16;
    p.firstRow = 17;
    p.ids64 = 0;
    p.capacity = 18;
    DeviceBuffer<int64_t> out(kMembers);
    readKernel<<<1, 1>>>(p, out.data());
    BITS_CUDA_CHECK(cudaGetLastError());
    std::vector<int64_t> expected(kMembers);
    readMembers(p, expected.data());
    EXPECT_EQ(out.download(), expected);
}

} // namespace
} // namespace faiss_bits::test
