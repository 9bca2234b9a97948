// The nearest words, by ranges that grow, and by all distances.

#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>

#include "kernels/common/Error.h"
#include "kernels/words/WordIndex.h"
#include "kernels/words/cpu/QueryPattern.h"
#include "kernels/words/cpu/RangeSearch.h"

namespace faiss_bits::words {

namespace {

/// Queries that are searched together: bounds what their ranges may hold.
constexpr size_t kBatch = 1024;
constexpr size_t kBatchOfCaller = 65536; // who bounds them, too

class KnnSearch {
   public:
    KnnSearch(
            const WordIndex& index,
            const LetterWords& queries,
            idx_t k,
            int32_t* distances,
            idx_t* ids,
            const WordOptions& options,
            const RangeOf& rangeOf)
            : index_(index),
              dictionary_(index.dictionary()),
              queries_(queries),
              k_(k),
              distances_(distances),
              ids_(ids),
              options_(options),
              rangeOf_(rangeOf),
              states_(size_t(options.workers())) {}

    void run() {
        const auto n = size_t(queries_.count());
        const size_t batch = rangeOf_ ? kBatchOfCaller : kBatch;
        for (size_t first = 0; first < n; first += batch) {
            std::vector<uint32_t> left(std::min(batch, n - first));
            std::iota(left.begin(), left.end(), uint32_t(first));
            search(left);
        }
    }

   private:
    bool scansAtOnce() const {
        return options_.method == Method::BruteForce ||
                (options_.method == Method::Auto &&
                 k_ * 8 > dictionary_.size());
    }

    void search(std::vector<uint32_t>& left) {
        uint32_t most = 0;
        while (!left.empty() && !scansAtOnce()) {
            most += 1 + most / 4;
            if (options_.method == Method::Auto &&
                most > uint32_t(cpu::kMostErrors)) {
                break;
            }
            searchRange(left, most);
        }
        forAll(options_, int64_t(left.size()), [&](int64_t i, int thread) {
            scan(left[size_t(i)], thread);
        });
    }

    /// Fills the rows of the queries that have k words within `most`, or have
    /// all; the others are left.
    void searchRange(std::vector<uint32_t>& left, uint32_t most) {
        LetterWords part;
        part.begins.push_back(0);
        for (const uint32_t query : left) {
            const uint32_t* letters = queries_.word(query);
            part.letters.insert(
                    part.letters.end(),
                    letters,
                    letters + queries_.length(query));
            part.begins.push_back(idx_t(part.letters.size()));
        }
        const WordRange found = rangeOf_
                ? rangeOf_(part, most)
                : cpu::searchRange(index_, part, most, options_);
        std::vector<uint32_t> more;
        for (size_t i = 0; i < left.size(); ++i) {
            const idx_t first = found.limits[i];
            const idx_t count = found.limits[i + 1] - first;
            if (count >= k_ || count == dictionary_.size()) {
                write(
                        left[i],
                        found.distances.data() + first,
                        [&](idx_t j) { return found.ids[size_t(first + j)]; },
                        count,
                        most);
            } else {
                more.push_back(left[i]);
            }
        }
        left.swap(more);
    }

    /// The first k by distance of results in the order of their ids.
    template <class D, class IdOf>
    void write(
            uint32_t query,
            const D* distances,
            const IdOf& idOf,
            idx_t count,
            uint32_t greatest) {
        // starts[d]: where the results at distance d begin.
        std::vector<idx_t> starts(size_t(greatest) + 2);
        for (idx_t i = 0; i < count; ++i) {
            ++starts[size_t(distances[i]) + 1];
        }
        for (size_t d = 1; d < starts.size(); ++d) {
            starts[d] += starts[d - 1];
        }
        int32_t* const outDistances = distances_ + idx_t(query) * k_;
        idx_t* const outIds = ids_ + idx_t(query) * k_;
        for (idx_t i = 0; i < count; ++i) {
            const idx_t place = starts[size_t(distances[i])]++;
            if (place < k_) {
                outDistances[place] = int32_t(distances[i]);
                outIds[place] = idOf(i);
            }
        }
        for (idx_t place = count; place < k_; ++place) {
            outDistances[place] = std::numeric_limits<int32_t>::max();
            outIds[place] = -1;
        }
    }

    struct ThreadState {
        explicit ThreadState(const Dictionary& dictionary)
                : pattern(dictionary) {}
        cpu::QueryPattern pattern;
        std::vector<uint32_t> byId;
    };

    /// By all distances.
    void scan(uint32_t query, int thread) {
        auto& state = states_[size_t(thread)];
        if (!state) {
            state = std::make_unique<ThreadState>(dictionary_);
            state->byId.resize(size_t(dictionary_.size()));
        }
        cpu::QueryPattern& pattern = state->pattern;
        pattern.set(queries_.word(query), queries_.length(query));
        const WordGroups& groups = index_.groups();
        uint32_t greatest = 0;
        for (uint32_t group = 0; group < groups.count(); ++group) {
            uint32_t distances[WordGroups::kSize];
            pattern.distances(groups, group, distances);
            for (uint32_t i = 0; i < groups.words(group); ++i) {
                const uint32_t place = groups.places(group)[i];
                state->byId[dictionary_.ids[place]] = distances[i];
                greatest = std::max(greatest, distances[i]);
            }
        }
        if (options_.stats) {
            options_.stats->distances += uint64_t(dictionary_.size());
        }
        write(
                query,
                state->byId.data(),
                [](idx_t id) { return id; },
                dictionary_.size(),
                greatest);
    }

    const WordIndex& index_;
    const Dictionary& dictionary_;
    const LetterWords& queries_;
    idx_t k_;
    int32_t* distances_;
    idx_t* ids_;
    const WordOptions& options_;
    const RangeOf& rangeOf_;
    std::vector<std::unique_ptr<ThreadState>> states_;
};

} // namespace

void WordIndex::knn(
        const Utf8Words& queries,
        idx_t k,
        int32_t* distances,
        idx_t* ids,
        const WordOptions& options,
        const RangeOf& rangeOf) const {
    BITS_THROW_IF_NOT_FMT(k >= 1, "k = %lld is below 1", (long long)k);
    const LetterWords encoded = dictionary_.encode(queries);
    BITS_THROW_IF_NOT_FMT(
            encoded.count() == 0 || (distances && ids),
            "%s is a null pointer",
            distances ? "ids" : "distances");
    KnnSearch(*this, encoded, k, distances, ids, options, rangeOf).run();
}

} // namespace faiss_bits::words
