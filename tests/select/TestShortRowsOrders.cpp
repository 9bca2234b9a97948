/// Short rows whose keys do not lie evenly: periods that meet in parts of a
/// lane, powers of two, far ends.

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <string>

#include "kernels/select/Select.h"
#include "tests/common/Compare.h"
#include "tests/common/DeviceBuffer.h"
#include "tests/common/GpuTest.h"
#include "tests/common/HostTypes.h"
#include "tests/common/Oracle.h"

namespace faiss_bits::test {
namespace {

enum class Lying {
    Period,      ///< half of the rows have a power of two
    AnyPower,    ///< either sign, and any power of two
    FarEnds,     ///< few are all but infinite, of either sign
    Walk,        ///< a random walk
    Exponential, ///< most lie next to the least
    Infinite,    ///< none to all are infinite, of one sign
    NextToZero,  ///< none to all next to zero, between far ends
    Undecided    ///< infinite or NaN, but for few
};
const std::vector<Lying> kLyings = {
        Lying::Period,
        Lying::AnyPower,
        Lying::FarEnds,
        Lying::Walk,
        Lying::Exponential,
        Lying::Infinite,
        Lying::NextToZero,
        Lying::Undecided};

class ShortRowsOrders : public GpuTest {
   protected:
    static void fillRow(
            std::span<float> row,
            Lying lying,
            DataType type,
            std::mt19937& random) {
        std::uniform_real_distribution<float> uniform(-1, 1);
        // Exponents that keys of 16 bits have, too.
        const float most = type == DataType::Float16
                ? 65504.0f
                : 0.99f * std::numeric_limits<float>::max();
        size_t period = 2 + random() % row.size();
        if (random() % 2 == 0) {
            period = size_t(1) << random() % 11;
        }
        const float infinity = random() % 2 == 0
                ? std::numeric_limits<float>::infinity()
                : -std::numeric_limits<float>::infinity();
        const float share = std::pow(uniform(random), 2.0f); // most are small
        float sum = 0;
        for (size_t i = 0; i < row.size(); ++i) {
            const float x = uniform(random);
            const float sign = random() % 2 == 0 ? 1.0f : -1.0f;
            sum += x;
            switch (lying) {
                case Lying::Period:
                    row[i] = i < period ? x : row[i - period];
                    break;
                case Lying::AnyPower:
                    row[i] = sign * std::exp2(14 * x);
                    break;
                case Lying::FarEnds:
                    row[i] = random() % 100 == 0 ? sign * most : x;
                    break;
                case Lying::Walk:
                    row[i] = sum;
                    break;
                case Lying::Exponential:
                    row[i] = std::exp(10 * x);
                    break;
                case Lying::Infinite:
                    row[i] = std::abs(x) < share ? infinity : x;
                    break;
                case Lying::NextToZero:
                    row[i] = std::abs(x) < share
                            ? sign * float(random() % 100) *
                                    std::numeric_limits<float>::denorm_min()
                            : sign * most * (1 - std::abs(x));
                    break;
                case Lying::Undecided:
                    row[i] = random() % 8 == 0 ? x
                            : random() % 2 == 0
                            ? std::numeric_limits<float>::quiet_NaN()
                            : infinity;
                    break;
            }
        }
    }

    static void expectSelects(
            int64_t rows,
            int64_t cols,
            int k,
            DataType type,
            bool largest,
            Lying lying) {
        SelectProblem p;
        p.rows = rows;
        p.cols = cols;
        p.k = k;
        p.keyType = type;
        p.largest = largest;
        p.algorithm = SelectAlgorithm::ShortRows;
        p.device = deviceTraits();
        p.device.multiprocessors = 1; // rows are not few
        SCOPED_TRACE(
                "cols=" + std::to_string(cols) + " k=" + std::to_string(k) +
                " type=" + std::to_string(int(type)) +
                " lying=" + std::to_string(int(lying)));
        std::mt19937 random(uint32_t(cols * 4099 + k));
        std::vector<float> keys(rows * cols);
        for (int64_t r = 0; r < rows; ++r) {
            const std::span<float> row(keys.data() + r * cols, cols);
            fillRow(row, lying, type, random);
            for (float& key : row) {
                key = roundTo(type, key);
            }
        }
        const DeviceBuffer<uint8_t> deviceKeys(packAs(type, keys));
        DeviceBuffer<uint8_t> outKeys(rows * k * sizeOf(type), 0xCD);
        DeviceBuffer<int64_t> outIds(rows * k, 0xCD);
        DeviceBuffer<uint8_t> scratch(selectWorkspaceBytes(p), 0xFF);
        p.keys = deviceKeys.data();
        p.outKeys = outKeys.data();
        p.outIds = outIds.data();
        runSelect(p, {scratch.data(), scratch.size()}, nullptr);
        BITS_CUDA_CHECK(cudaDeviceSynchronize());
        const std::vector<float> found = unpackFrom(type, outKeys.download());
        const std::vector<int64_t> ids = outIds.download();
        for (int64_t r = 0; r < rows; ++r) {
            const RowOfKeys row{keys.data() + r * cols, cols};
            ASSERT_TRUE(isTopKOfRow(
                    row,
                    topKOfRow(row.keys, cols, nullptr, 0, k, largest),
                    found.data() + r * k,
                    ids.data() + r * k,
                    k,
                    0))
                    << "row " << r;
        }
    }
};

TEST_F(ShortRowsOrders, EveryKernelOfSeveralEntries) {
    struct Shape {
        int64_t cols;
        std::vector<int> ks;
    };
    const Shape shapes[] = {
            {31, {9, 30}},
            {60, {11, 20, 50}},
            {100, {20, 50, 97}},
            {128, {33, 128}},
            {133, {19, 60}},
            {149, {20, 138}},
            {250, {40, 100, 200, 250}},
            {500, {20, 40, 100, 250, 450}},
            {1000, {30, 60, 100, 250, 500}},
            {2191, {13, 39, 174, 224, 256, 360, 512}},
            {5003, {40, 160, 256, 420}},
            {16384, {39, 160, 512}}};
    for (const Shape& shape : shapes) {
        for (const int k : shape.ks) {
            for (const Lying lying : kLyings) {
                for (const DataType type :
                     {DataType::Float32,
                      DataType::Float16,
                      DataType::BFloat16}) {
                    expectSelects(60, shape.cols, k, type, k % 2 == 0, lying);
                    if (HasFailure()) {
                        return;
                    }
                }
            }
        }
    }
}

TEST_F(ShortRowsOrders, Small) {
    for (const Lying lying : kLyings) {
        for (const int k : {160, 400}) {
            expectSelects(17, 2100, k, DataType::Float32, false, lying);
        }
        expectSelects(17, 60, 20, DataType::Float32, false, lying);
        expectSelects(17, 31, 30, DataType::Float32, false, lying);
        expectSelects(17, 100, 97, DataType::Float32, true, lying);
        expectSelects(17, 149, 138, DataType::Float32, true, lying);
        expectSelects(17, 60, 11, DataType::Float16, false, lying);
        expectSelects(17, 100, 20, DataType::BFloat16, true, lying);
        expectSelects(17, 189, 23, DataType::Float32, true, lying);
        expectSelects(17, 231, 46, DataType::Float32, false, lying);
        expectSelects(17, 500, 100, DataType::Float32, true, lying);
    }
}

} // namespace
} // namespace faiss_bits::test
