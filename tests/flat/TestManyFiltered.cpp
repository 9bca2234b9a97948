/// Selectors of every kind for so many vectors that an index scans them in 8
/// bits: every place of some queries against float64, and raw selectors,
/// prepared ones and arrays on the device against each other.

#include <random>

#include "tests/common/CanonicalOracle.h"
#include "tests/flat/GpuFilterHarness.h"

namespace faiss_bits::test {
namespace {

constexpr int64_t kN = 524288 + 77;
constexpr int kDims = 100;
constexpr int64_t kQueries = 500;

class GpuManyFiltered : public GpuTest {
   protected:
    void prepare() override {
        vectors_ = uniform(kN, 1);
        queries_ = uniform(kQueries, 2);
        index_ = std::make_unique<gpu::GpuIndexBitsFlat>(
                &resources_, kDims, faiss::METRIC_L2);
        index_->add(kN, vectors_.data());
        for (int64_t q : kChecked) {
            ranked_.push_back(canonicalTopK(
                    Metric::L2,
                    2,
                    queries_.data() + q * kDims,
                    vectors_.data(),
                    kN,
                    kDims,
                    kN));
        }
    }

    void expectFiltered(faiss::IDSelector& selector, const char* name) {
        SCOPED_TRACE(name);
        DeviceSelector prepared(&selector, kN);
        for (int64_t k : {1, 10, 100}) {
            const SearchOutput raw =
                    searchWith(*index_, queries_, k, &selector);
            for (size_t i = 0; i < ranked_.size(); ++i) {
                std::vector<Ranked> want;
                for (const Ranked& one : ranked_[i]) {
                    if (int64_t(want.size()) < k &&
                        selector.is_member(one.id)) {
                        want.push_back(one);
                    }
                }
                const int64_t at = kChecked[i] * k;
                ASSERT_TRUE(isCanonical(
                        want,
                        false,
                        raw.distances.data() + at,
                        raw.labels.data() + at,
                        k))
                        << "query " << kChecked[i];
            }
            ASSERT_TRUE(sameOutput(
                    raw, searchWith(*index_, queries_, k, &prepared)));
            ASSERT_TRUE(sameOutput(
                    raw, searchOnDeviceWith(*index_, queries_, k, &prepared)));
        }
    }

    static std::vector<float> uniform(int64_t rows, uint32_t seed) {
        std::mt19937 random(seed);
        std::vector<float> out(rows * kDims);
        for (float& one : out) {
            one = float(random() >> 8) * 0x1p-24f;
        }
        return out;
    }

    static constexpr int64_t kChecked[] = {0, kQueries - 1};
    faiss::gpu::StandardGpuResources resources_;
    std::vector<float> vectors_;
    std::vector<float> queries_;
    std::unique_ptr<gpu::GpuIndexBitsFlat> index_;
    std::vector<std::vector<Ranked>> ranked_;
};

TEST_F(GpuManyFiltered, EveryKind) {
    faiss::IDSelectorRange half(kN / 2, kN);
    expectFiltered(half, "the second half");
    faiss::IDSelectorRange end(kN - 7, 2 * kN);
    expectFiltered(end, "the last seven");
    faiss::IDSelectorRange none(50, 50);
    expectFiltered(none, "none");
    faiss::IDSelectorAll all;
    expectFiltered(all, "all");
    std::vector<idx_t> ids;
    for (idx_t id = 0; id < kN; id += 3) {
        ids.push_back(kN - id);
    }
    faiss::IDSelectorArray array(ids.size(), ids.data());
    DeviceSelector prepared(&array, kN); // to ask an array takes its length
    expectFiltered(prepared, "array, prepared");
    faiss::IDSelectorBatch batch(ids.size(), ids.data());
    expectFiltered(batch, "batch");
    faiss::IDSelectorNot no(&batch);
    expectFiltered(no, "not");
    std::vector<uint8_t> bits(kN / 8 + 1, 0xA6);
    faiss::IDSelectorBitmap bitmap(bits.size(), bits.data());
    expectFiltered(bitmap, "bitmap");
    EveryFifth own;
    expectFiltered(own, "of the user's own");
    faiss::IDSelectorNot notOwn(&own);
    expectFiltered(notOwn, "not of the user's own");
#if FAISS_BITS_FAISS_HAS_LOGICAL_SELECTORS
    faiss::IDSelectorAnd both(&notOwn, &half);
    expectFiltered(both, "and");
    faiss::IDSelectorOr either(&own, &half);
    expectFiltered(either, "or");
    faiss::IDSelectorXOr one(&bitmap, &half);
    expectFiltered(one, "xor");
#endif
}

} // namespace
} // namespace faiss_bits::test
