/// Rows whose best are few values of many columns each, as those of saw teeth:
/// their survivors lie together.

#include "kernels/common/DeviceTraits.h"
#include "tests/select/SelectOfFloats.h"

namespace faiss_bits::test {
namespace {

class EqualKeys : public GpuTest {
   protected:
    static constexpr int64_t kRows = 5;
    static constexpr int64_t kCols = 8759;

    /// Teeth of so many columns, which begin at another place in each row;
    /// `zero` is the key of the first column of a tooth.
    static std::vector<float> teethOf(int64_t period, float zero) {
        std::vector<float> keys(kRows * kCols);
        for (int64_t i = 0; i < kRows * kCols; ++i) {
            const int64_t step = (i % kCols + 13 * (i / kCols)) % period;
            keys[i] = step > 0 ? float(step) / float(period) : zero;
        }
        return keys;
    }

    /// A block a row.
    static void expectRows(const std::vector<float>& keys, bool largest) {
        for (const int k : {30, 200, 257, 512, 513, 1063, 2048}) {
            SCOPED_TRACE("k = " + std::to_string(k));
            SelectProblem p;
            p.rows = kRows;
            p.cols = kCols;
            p.k = k;
            p.largest = largest;
            p.algorithm = SelectAlgorithm::SampleThreshold;
            p.device = deviceTraits();
            p.device.multiprocessors = 1;
            expectSelectOfFloats(p, keys);
        }
    }
};

/// So many columns of each key, both sides of what is compared with each other.
TEST_F(EqualKeys, SawTeeth) {
    for (const int64_t equal : {20, 63, 64, 65, 127, 128, 129, 300, 1500}) {
        for (const bool largest : {false, true}) {
            SCOPED_TRACE("equal = " + std::to_string(equal));
            expectRows(teethOf(kCols / equal, 0.0f), largest);
        }
    }
}

/// Zeros with a sign keep it.
TEST_F(EqualKeys, SmallMinusZero) {
    std::vector<float> keys = teethOf(60, -0.0f);
    for (size_t i = 0; i < keys.size(); i += 120) {
        keys[i] = keys[i] == 0 ? 0.0f : keys[i];
    }
    expectRows(keys, false);
}

/// A key of many columns next to each other, and then the next.
TEST_F(EqualKeys, Stairs) {
    std::vector<float> keys(kRows * kCols);
    for (size_t i = 0; i < keys.size(); ++i) {
        keys[i] = float(i % kCols / 300) - 9;
    }
    expectRows(keys, false);
    expectRows(keys, true);
}

/// Half of a row of a normal distribution: keys of both signs.
TEST_F(EqualKeys, BothSigns) {
    std::mt19937 random(33);
    std::normal_distribution<float> normal(1.0f);
    std::vector<float> keys(kRows * kCols);
    for (float& key : keys) {
        key = normal(random);
    }
    expectRows(keys, false);
}

} // namespace
} // namespace faiss_bits::test
