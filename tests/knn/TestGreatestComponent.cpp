/// The greatest component of some rows, which scales their image.

#include "tests/knn/TensorHarness.h"

namespace faiss_bits::test {
namespace {

class GreatestComponent : public GpuTest {};

TEST_F(GreatestComponent, LeavesOutWhatIsNotFinite) {
    const std::vector<float> rows = {1, -3, NAN, INFINITY, 2, -INFINITY};
    const DeviceBuffer<uint8_t> device(tensorBytes(DataType::Float32, rows));
    DeviceBuffer<float> out(1);
    auto run = [&](int64_t n, bool keep) {
        runGreatestComponent(
                device.data(),
                DataType::Float32,
                n,
                2,
                nullptr,
                keep,
                out.data(),
                nullptr);
        return out.download()[0];
    };
    EXPECT_EQ(run(0, false), 0);
    EXPECT_EQ(run(3, false), 3);
    EXPECT_EQ(run(3, true), 3);
    out.upload({7.0f});
    EXPECT_EQ(run(3, true), 7);
}

} // namespace
} // namespace faiss_bits::test
