/// Adds, removals, updates, filters, searches, range searches and reads in any
/// order, of every kind of list, against the model.

#include "tests/ivf/ListModel.h"

namespace faiss_bits::test {
namespace {

class IvfMixedCalls : public GpuTest {};

/// One run of calls.
class Calls {
   public:
    Calls(ListModel& model, uint32_t seed) : model_(model), random_(seed) {
        model_.index->nprobe = kNprobe;
    }

    void run(int steps) {
        for (int step = 0; step < steps; ++step) {
            SCOPED_TRACE(testing::Message() << "step " << step);
            one();
            model_.expectSameLists();
            if (testing::Test::HasFatalFailure()) {
                return;
            }
        }
        search(nullptr);
    }

   private:
    static constexpr int kNprobe = 5;

    void one() {
        const auto ids = someIds(random_() % 200);
        const faiss::IDSelectorBatch batch(ids.size(), ids.data());
        const faiss::IDSelectorNot no(&batch);
        const int64_t first = ids.empty() ? 0 : ids[0];
        const faiss::IDSelectorRange range(
                first, first + int64_t(random_() % 10000000));
        const faiss::IDSelector* const selectors[] = {&batch, &no, &range};
        const faiss::IDSelector& any = *selectors[random_() % 3];
        switch (random_() % 8) {
            case 0:
            case 1:
                return add(int64_t(random_() % 250));
            case 2:
                return model_.remove(random_() % 4 ? batch : any);
            case 3:
            case 4:
                return update(ids);
            case 5:
                return search(random_() % 3 ? &any : nullptr);
            case 6:
                return searchRange(random_() % 3 ? &any : nullptr);
            default:
                model_.expectBatch(ids, random_() % 2);
                if (!isReclaimed_) {
                    // FAISS ends the process at a second time, where a list is
                    // empty both times.
                    model_.reclaimMemory();
                    isReclaimed_ = true;
                }
        }
    }

    std::vector<int64_t> someIds(size_t count) {
        auto ids = model_.selectorIds();
        std::shuffle(ids.begin(), ids.end(), random_);
        ids.resize(std::min(count, ids.size()));
        return ids;
    }

    std::vector<float> someVectors(int64_t count) {
        return makeVectors(count, model_.oracle.c.d, random_());
    }

    void add(int64_t count) {
        std::vector<int64_t> ids(count);
        std::iota(ids.begin(), ids.end(), nextId_);
        nextId_ += count;
        model_.add(ids, someVectors(count));
    }

    void update(const std::vector<int64_t>& ids) {
        if (model_.oracle.c.indices == faiss::gpu::INDICES_IVF) {
            return add(7); // it has no ids to update
        }
        model_.update(ids, someVectors(int64_t(ids.size())));
    }

    void select(const faiss::IDSelector* selector) {
        model_.toOracle();
        model_.oracle.selects = nullptr;
        if (selector) {
            model_.oracle.selects = [selector](int64_t id) {
                return selector->is_member(id);
            };
        }
    }

    void search(const faiss::IDSelector* selector) {
        select(selector);
        faiss::SearchParametersIVF params;
        params.nprobe = kNprobe;
        params.sel = const_cast<faiss::IDSelector*>(selector);
        const IvfData& oracle = model_.oracle;
        const int64_t k = 1 + int64_t(random_() % 40);
        SearchOutput found;
        found.distances.resize(oracle.c.q * k);
        found.labels.resize(oracle.c.q * k);
        model_.index->search(
                oracle.c.q,
                oracle.queries.data(),
                k,
                found.distances.data(),
                found.labels.data(),
                &params);
        oracle.expectExact(found, kNprobe, k);
        model_.oracle.selects = nullptr;
    }

    void searchRange(const faiss::IDSelector* selector) {
        select(selector);
        const float radius = model_.oracle.c.metric == faiss::METRIC_L2
                ? 1.0f + 0.01f * float(random_() % 1000)
                : -2.0f + 0.004f * float(random_() % 1000);
        expectRange(
                model_.oracle,
                *model_.index,
                radius,
                kNprobe,
                const_cast<faiss::IDSelector*>(selector));
        model_.oracle.selects = nullptr;
    }

    ListModel& model_;
    std::mt19937 random_;
    int64_t nextId_ = 1000000;
    bool isReclaimed_ = false;
};

TEST_F(IvfMixedCalls, SmallAnyOrder) {
    uint32_t seed = 0;
    for (auto metric : {faiss::METRIC_L2, faiss::METRIC_INNER_PRODUCT}) {
        IvfCase c;
        c.metric = metric;
        c.n = metric == faiss::METRIC_L2 ? 150 : 400;
        c.d = 12;
        c.nlist = 9;
        c.q = 6;
        forEveryKind(c, false, [&](ListModel& model) {
            SCOPED_TRACE(testing::Message() << "seed " << ++seed);
            Calls(model, seed).run(24);
        });
    }
}

} // namespace
} // namespace faiss_bits::test
