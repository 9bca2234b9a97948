/// Filters of inverted lists of codes against the oracle.

#include <unordered_set>

#include <faiss/impl/IDSelector.h>

#include "tests/ivf/ProductHarness.h"
#include "tests/ivf/ScalarHarness.h"

namespace faiss_bits::test {
namespace {

class IvfCodedFilters : public GpuTest {};

constexpr int kNprobe = 4;

/// Not one of FAISS's: the host is asked.
struct OddIds : faiss::IDSelector {
    bool is_member(int64_t id) const override {
        return id % 2 != 0;
    }
};

/// Some of the vectors, none and all of them.
template <class Data>
void expectFiltered(Data data) {
    const auto index = data.makeIndex();
    std::vector<int64_t> ids = data.oracle.selectorIds();
    std::mt19937 random(7);
    std::shuffle(ids.begin(), ids.end(), random);
    const std::vector<int64_t> few(ids.begin(), ids.begin() + ids.size() / 20);
    const faiss::IDSelectorBatch ofFew(few.size(), few.data());
    const std::unordered_set<int64_t> isFew(few.begin(), few.end());
    const auto [least, most] = std::minmax_element(ids.begin(), ids.end());
    const int64_t middle = *least + (*most - *least) / 2;
    const faiss::IDSelectorRange upper(middle, *most + 1);
    const faiss::IDSelectorRange none(*most + 1, *most + 2);
    const faiss::IDSelectorRange all(*least, *most + 1);
    const OddIds odd;
    const auto expect = [&](const faiss::IDSelector& selector,
                            std::function<bool(int64_t)> selects,
                            const char* name) {
        for (int k : {1, 30}) {
            SCOPED_TRACE(testing::Message() << name << " k=" << k);
            faiss::SearchParametersIVF params;
            params.nprobe = kNprobe;
            params.sel = const_cast<faiss::IDSelector*>(&selector);
            SearchOutput found;
            found.distances.resize(data.c.q * k);
            found.labels.resize(data.c.q * k);
            index->search(
                    data.c.q,
                    data.oracle.queries.data(),
                    k,
                    found.distances.data(),
                    found.labels.data(),
                    &params);
            data.oracle.selects = selects;
            data.oracle.expectExact(found, kNprobe, k);
        }
    };
    expect(
            ofFew, [&](int64_t id) { return isFew.count(id) > 0; }, "few");
    expect(
            upper, [&](int64_t id) { return id >= middle; }, "upper half");
    expect(
            none, [](int64_t) { return false; }, "none");
    expect(
            all, [](int64_t) { return true; }, "all");
    expect(
            odd, [](int64_t id) { return id % 2 != 0; }, "odd");
}

/// Few queries, pair by pair, and many, list by list.
template <class Expect>
void forShapes(const Expect& expect) {
    for (int64_t q : {3, 150}) {
        for (bool interleaved : {true, false}) {
            SCOPED_TRACE(
                    testing::Message()
                    << "q=" << q << " interleaved=" << interleaved);
            IvfCase c;
            c.n = 1500;
            c.d = 12;
            c.nlist = 9;
            c.q = q;
            c.interleaved = interleaved;
            expect(c);
        }
    }
}

TEST_F(IvfCodedFilters, ScalarCodes) {
    for (const ScalarType& type : kScalarTypes) {
        for (bool byResidual : {false, true}) {
            SCOPED_TRACE(
                    testing::Message()
                    << type.name << " byResidual=" << byResidual);
            forShapes([&](const IvfCase& c) {
                if (type.type != ScalarQuantizer::QT_6bit || c.interleaved) {
                    expectFiltered(makeScalar(c, type.type, byResidual));
                }
            });
        }
    }
}

TEST_F(IvfCodedFilters, ProductCodes) {
    forShapes([](const IvfCase& c) {
        expectFiltered(makeProduct(c, {12, 4, 8}));
        if (c.interleaved) {
            expectFiltered(makeProduct(c, {12, 3, 5}));
        }
    });
}

TEST_F(IvfCodedFilters, WhereverTheIdsAre) {
    for (auto indices :
         {faiss::gpu::INDICES_CPU,
          faiss::gpu::INDICES_IVF,
          faiss::gpu::INDICES_32_BIT,
          faiss::gpu::INDICES_64_BIT}) {
        SCOPED_TRACE(testing::Message() << "indices " << int(indices));
        forShapes([&](IvfCase c) {
            c.indices = indices;
            expectFiltered(makeScalar(c, ScalarQuantizer::QT_8bit, true));
            expectFiltered(makeProduct(c, {12, 4, 8}));
        });
    }
}

} // namespace
} // namespace faiss_bits::test
