/// range_search of inverted lists of codes against the oracle.

#include <limits>

#include "tests/ivf/ListModel.h"

namespace faiss_bits::test {
namespace {

class IvfCodedRange : public GpuTest {};

TEST_F(IvfCodedRange, SmallEveryKindOfIndex) {
    for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
        // Pair by pair, and list by list.
        for (int64_t q : {2, 150}) {
            IvfCase c;
            c.metric = metric;
            c.n = 900;
            c.d = 12;
            c.nlist = 11;
            c.q = q;
            c.fill = q == 2 ? Fill::Integers : Fill::Uniform;
            forEveryKind(c, false, [&](ListModel& model) {
                const IvfData& oracle = model.oracle;
                for (double part : {0.0, 0.05, 0.5, 1.0}) {
                    expectRange(
                            oracle, *model.index, listRadius(oracle, part), 4);
                }
                EXPECT_GT(
                        expectRange(
                                oracle,
                                *model.index,
                                listRadius(oracle, 0.5),
                                c.nlist),
                        0u);
                const float inf = std::numeric_limits<float>::infinity();
                EXPECT_EQ(
                        expectRange(
                                oracle,
                                *model.index,
                                metric == faiss::METRIC_L2 ? inf : -inf,
                                c.nlist),
                        size_t(q * c.n));
            });
        }
    }
}

TEST_F(IvfCodedRange, SmallFiltered) {
    IvfCase c;
    c.n = 900;
    c.d = 12;
    c.nlist = 11;
    for (int64_t q : {3, 150}) {
        c.q = q;
        forEveryKind(c, false, [](ListModel& model) {
            auto ids = model.selectorIds();
            std::shuffle(ids.begin(), ids.end(), std::mt19937(4));
            ids.resize(ids.size() / 3);
            faiss::IDSelectorBatch batch(ids.size(), ids.data());
            model.oracle.selects = [&](int64_t id) {
                return batch.is_member(id);
            };
            EXPECT_GT(
                    expectRange(
                            model.oracle,
                            *model.index,
                            listRadius(model.oracle, 0.7),
                            6,
                            &batch),
                    0u);
        });
    }
}

} // namespace
} // namespace faiss_bits::test
