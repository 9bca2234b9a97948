#include <limits>

#include "tests/dropin/DropinHarness.h"

/// FAISS's functions never return NaN, and neither do ours.
namespace faiss_bits::test {
namespace {

class DropinNan : public GpuTest {};

/// Calls one of the functions on a single row. The given ids of pairs are the
/// columns doubled.
template <class Index>
void selectOneRow(
        Which which,
        bool largest,
        const std::vector<float>& keys,
        int k,
        std::vector<float>& outKeys,
        std::vector<Index>& outIds) {
    const int64_t cols = int64_t(keys.size());
    std::vector<Index> ids;
    for (int64_t i = 0; i < cols; ++i) {
        ids.push_back(Index(2 * i));
    }
    const std::vector<float> zeros(cols, 0.f);
    DeviceBuffer<float> deviceKeys(keys);
    DeviceBuffer<Index> deviceIds(ids);
    DeviceBuffer<float> deviceZeros(zeros);
    DeviceBuffer<float> deviceOutKeys(k, 0xA5);
    DeviceBuffer<Index> deviceOutIds(k, 0xA5);
    auto in = matrixOf<float, Index>(deviceKeys.data(), 1, cols, cols);
    auto inIds = matrixOf<Index, Index>(deviceIds.data(), 1, cols, cols);
    auto keyTensor = matrixOf<float, Index>(deviceOutKeys.data(), 1, k, k);
    auto idTensor = matrixOf<Index, Index>(deviceOutIds.data(), 1, k, k);
    faiss::gpu::Vector<float, Index> bias{
            deviceZeros.data(), {1}, {Index(cols)}};
    switch (which) {
        case Which::Block:
            faiss::gpu::runBlockSelect(
                    in, keyTensor, idTensor, largest, k, nullptr);
            break;
        case Which::Pair:
            faiss::gpu::runBlockSelectPair(
                    in, inIds, keyTensor, idTensor, largest, k, nullptr);
            break;
        case Which::L2:
            faiss::gpu::runL2SelectMin(
                    in, bias, keyTensor, idTensor, k, nullptr);
            break;
    }
    outKeys = deviceOutKeys.download();
    outIds = deviceOutIds.download();
}

/// NaN is never a result, wherever it stands: its place has the number that
/// FAISS's queues start with, the greatest finite one (the least one for the
/// largest keys), and the id -1.
template <class Index>
void expectNoNan(Which which, bool largest) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const float worst =
            largest ? -maxOf(DataType::Float32) : maxOf(DataType::Float32);
    const Index scale = which == Which::Pair ? 2 : 1;
    // Numbers stand at columns 2, 9 and 16; all others are NaN.
    for (int cols : {1, 5, 40, 3000, 200000}) {
        for (int numbers : {0, 1, 3}) {
            for (int k : {1, 4, 100, 2048}) {
                std::vector<float> keys(cols, nan);
                std::vector<float> wantKeys(k, worst);
                std::vector<Index> wantIds(k, Index(-1));
                int place = 0;
                for (int i = 0; i < numbers && 2 + 7 * i < cols; ++i) {
                    const int column = 2 + 7 * i;
                    keys[column] = largest ? float(-i) : float(i);
                    if (place < k) {
                        wantKeys[place] = keys[column];
                        wantIds[place++] = Index(column) * scale;
                    }
                }
                std::vector<float> outKeys;
                std::vector<Index> outIds;
                selectOneRow(which, largest, keys, k, outKeys, outIds);
                ASSERT_EQ(outIds, wantIds)
                        << cols << " columns, " << numbers
                        << " numbers, k=" << k << ", function " << int(which);
                ASSERT_EQ(outKeys, wantKeys)
                        << cols << " columns, " << numbers
                        << " numbers, k=" << k << ", function " << int(which);
            }
        }
    }
}

TEST_F(DropinNan, IsNeverReturned) {
    for (Which which : kAllFunctions) {
        for (bool largest : {false, true}) {
            if (which != Which::L2 || !largest) {
                expectNoNan<int>(which, largest);
                expectNoNan<int64_t>(which, largest);
            }
        }
    }
}

} // namespace
} // namespace faiss_bits::test
