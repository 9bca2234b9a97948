#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "kernels/cpu/Targets.h"
#include "kernels/cpu/ivf/IvfKnn.h"
#include "tests/common/CanonicalOracle.h"
#include "tests/common/HardVectors.h"

/// What the tests of inverted lists on the CPU share.
namespace faiss_bits::test {

/// Lists in memory. Where they do not stay, each open() is a copy that close()
/// fills with NaN and frees: whoever reads it later, reads that.
class TestLists : public cpu::IvfLists {
   public:
    explicit TestLists(bool kept) : kept_(kept) {}

    idx_t length(idx_t list) const override {
        return idx_t(ids[list].size());
    }
    const float* open(idx_t list) const override {
        ++numOpen;
        if (kept_) {
            return rows[list].data();
        }
        auto* copy = new float[rows[list].size()];
        std::copy(rows[list].begin(), rows[list].end(), copy);
        return copy;
    }
    void close(idx_t list, const float* from) const override {
        --numOpen;
        if (!kept_) {
            std::fill_n(
                    const_cast<float*>(from),
                    rows[list].size(),
                    std::numeric_limits<float>::quiet_NaN());
            delete[] from;
        }
    }
    bool areKept() const override {
        return kept_;
    }
    idx_t id(idx_t list, idx_t place) const override {
        return ids[list][place];
    }

    std::vector<std::vector<float>> rows;
    std::vector<std::vector<idx_t>> ids;
    mutable std::atomic<int> numOpen{0};

   private:
    bool kept_;
};

struct IvfCpuCase {
    Metric metric = Metric::L2;
    idx_t n = 700;
    int d = 20;
    idx_t numLists = 12;
    idx_t q = 40;
    idx_t nprobe = 5;
    idx_t k = 10;
    idx_t mostVectors = 0;
    bool filtered = false;
    bool kept = true;
    bool givePlaces = false;
    uint32_t seed = 1;
};

inline std::ostream& operator<<(std::ostream& out, const IvfCpuCase& c) {
    return out << (c.metric == Metric::L2 ? "L2" : "IP") << " n=" << c.n
               << " d=" << c.d << " lists=" << c.numLists << " q=" << c.q
               << " nprobe=" << c.nprobe << " k=" << c.k
               << " mostVectors=" << c.mostVectors << " filtered=" << c.filtered
               << " kept=" << c.kept << " givePlaces=" << c.givePlaces
               << " seed=" << c.seed;
}

/// Vectors at random in lists of uneven length, some empty; ids are numbers
/// without order; queries probe some lists, or none (-1), or one twice.
class IvfCpuData {
   public:
    IvfCpuData(
            const IvfCpuCase& which,
            const std::vector<float>& vectors,
            std::vector<float> theQueries)
            : c(which), lists(c.kept), queries(std::move(theQueries)) {
        std::mt19937 random(c.seed);
        lists.rows.resize(c.numLists);
        lists.ids.resize(c.numLists);
        std::vector<idx_t> ids(c.n);
        for (idx_t i = 0; i < c.n; ++i) {
            ids[i] = (i - c.n / 3) * ((idx_t(1) << 33) + 1);
        }
        std::shuffle(ids.begin(), ids.end(), random);
        for (idx_t i = 0; i < c.n; ++i) {
            // The higher a list's number, the fewer; the second is empty.
            idx_t list = idx_t(random() % c.numLists);
            list = list * idx_t(random() % c.numLists) / c.numLists;
            list = list == 1 ? 0 : list;
            const float* x = vectors.data() + i * c.d;
            lists.rows[list].insert(lists.rows[list].end(), x, x + c.d);
            lists.ids[list].push_back(ids[i]);
        }
        probes.resize(c.q * c.nprobe);
        for (idx_t& list : probes) {
            list = idx_t(random() % (c.numLists + 1)) - 1;
        }
        allowed.resize(c.numLists);
        for (idx_t list = 0; list < c.numLists; ++list) {
            for (idx_t place = 0; place < lists.length(list); ++place) {
                if (random() % 3 == 0 && list != 2) {
                    allowed[list].push_back(place);
                }
            }
            allowedPlaces.emplace_back(allowed[list]);
        }
    }

    cpu::IvfKnnProblem problem() const {
        cpu::IvfKnnProblem p;
        p.metric = c.metric;
        p.d = c.d;
        p.numQueries = c.q;
        p.queries = queries.data();
        p.lists = &lists;
        p.numLists = c.numLists;
        p.nprobe = c.nprobe;
        p.probes = probes.data();
        p.mostVectors = c.mostVectors;
        p.allowed = c.filtered ? allowedPlaces.data() : nullptr;
        p.k = c.k;
        p.givePlaces = c.givePlaces;
        return p;
    }

    std::vector<Ranked> bestOf(idx_t query) const {
        struct One {
            Ranked ranked;
            idx_t label;
        };
        std::vector<One> all;
        idx_t left = c.mostVectors > 0 ? c.mostVectors
                                       : std::numeric_limits<idx_t>::max();
        for (idx_t i = 0; i < c.nprobe; ++i) {
            const idx_t list = probes[query * c.nprobe + i];
            for (idx_t place = 0; list >= 0 && place < lists.length(list);
                 ++place) {
                if (left-- <= 0) {
                    break;
                }
                if (c.filtered &&
                    !std::count(
                            allowed[list].begin(),
                            allowed[list].end(),
                            place)) {
                    continue;
                }
                const float distance = canonicalDistance(
                        c.metric,
                        0,
                        queries.data() + query * c.d,
                        lists.rows[list].data() + place * c.d,
                        c.d);
                if (!std::isnan(distance)) {
                    all.push_back(
                            {{double(distance), lists.ids[list][place]},
                             c.givePlaces ? list << 32 | place
                                          : lists.ids[list][place]});
                }
            }
        }
        const bool largest = isSimilarity(c.metric);
        std::stable_sort(
                all.begin(), all.end(), [&](const One& a, const One& b) {
                    if (a.ranked.key != b.ranked.key) {
                        return largest ? a.ranked.key > b.ranked.key
                                       : a.ranked.key < b.ranked.key;
                    }
                    return a.ranked.id < b.ranked.id;
                });
        std::vector<Ranked> best;
        for (size_t i = 0; i < all.size() && idx_t(i) < c.k; ++i) {
            best.push_back({all[i].ranked.key, all[i].label});
        }
        return best;
    }

    /// Runs a problem of ours and compares every place with the oracle.
    void expectExact(cpu::IvfKnnProblem p, SearchStats* stats = nullptr) const {
        std::vector<float> distances(c.q * c.k, -7.f);
        std::vector<idx_t> ids(c.q * c.k, -7);
        p.outDistances = distances.data();
        p.outIds = ids.data();
        p.stats = stats;
        cpu::runIvfKnn(p);
        for (idx_t query = 0; query < c.q; ++query) {
            ASSERT_TRUE(isCanonical(
                    bestOf(query),
                    isSimilarity(c.metric),
                    distances.data() + query * c.k,
                    ids.data() + query * c.k,
                    c.k))
                    << "query " << query << " of " << c << " way "
                    << int(p.choice.way) << " sharing " << int(p.choice.sharing)
                    << " rows " << p.choice.queryBlock << " target "
                    << p.choice.target << " threads " << p.threads;
        }
        EXPECT_EQ(0, lists.numOpen.load());
    }

    const IvfCpuCase c;
    TestLists lists;
    std::vector<float> queries;
    std::vector<idx_t> probes;
    std::vector<std::vector<idx_t>> allowed;
    std::vector<cpu::IvfPlaces> allowedPlaces; ///< in `allowed`
};

inline std::vector<float> uniformRows(idx_t n, int d, uint32_t seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> uniform(-1, 1);
    std::vector<float> rows(n * d);
    for (float& value : rows) {
        value = uniform(random);
    }
    return rows;
}

inline IvfCpuData uniformData(const IvfCpuCase& c) {
    return IvfCpuData(
            c,
            uniformRows(c.n, c.d, c.seed),
            uniformRows(c.q, c.d, c.seed + 9));
}

} // namespace faiss_bits::test
