#include <algorithm>
#include <vector>

#include "kernels/cpu/KnnSelection.h"
#include "kernels/cpu/ParallelFor.h"
#include "kernels/cpu/Sweep.h"

/// The end of a certified search whose threads have shared the vectors: a row's
/// candidates are anywhere, but each thread's own vectors are in its cache.
namespace faiss_bits::cpu {

namespace {

/// Candidates of an attempt, and a vector of components more.
template <class T>
idx_t roomOf(const Certifier<T>& certifier) {
    return roundUp(certifier.mostChosen + 16, 16);
}

} // namespace

template <class T>
bool KnnSelection<T>::paysByParts(idx_t rows, const Certifier<T>& certifier)
        const {
    // Components of a thread that come from other threads' caches otherwise:
    // about what two more parallel loops take. Vectors of a thread that its
    // cache may hold. Scratch of all rows.
    constexpr idx_t kComponents = 1 << 17, kOwnBytes = 2 << 20;
    constexpr idx_t kBytes = 16 << 20;
    if (parts() == 1 || sinks_[0].kind != SinkKind::Buffer) {
        return false;
    }
    const auto shareOf = [&](idx_t count) {
        return (count + parts() - 1) / parts();
    };
    const idx_t bytes = setup_.depth * idx_t(sizeof(double)) +
            roomOf(certifier) * idx_t(sizeof(T) + sizeof(CandidateId<T>));
    return shareOf(rows) * certifier.mostChosen * setup_.depth >= kComponents &&
            shareOf(setup_.numVectors) * setup_.depth * idx_t(sizeof(T)) <=
            kOwnBytes &&
            rows * bytes <= kBytes;
}

template <class T>
void KnnSelection<T>::certifyByParts(
        idx_t rows,
        idx_t first,
        Certifier<T>& certifier,
        const ErrorBound<T>& bound,
        const KnnOutput<T>& out) {
    const idx_t stride = roundUp(setup_.depth, kCanonicalSlots);
    const idx_t room = roomOf(certifier);
    AlignedBuffer<double> queries(rows * stride);
    AlignedBuffer<CandidateId<T>> ids(rows * room);
    AlignedBuffer<T> keys(rows * room);
    std::vector<Attempt> attempts(rows);
    const int threads = int(scratch_.size());
    parallelFor(setup_.team, threads, rows, [&](idx_t row, int thread) {
        Attempt& attempt = attempts[row];
        attempt.query.components = queries.get() + row * stride;
        attempt.ids = ids.get() + row * room;
        attempt.keys = keys.get() + row * room;
        chooseOf(row, first + row, attempt, scratch_[thread], certifier);
        attempt.isElsewhere = true; // the scratch is for other rows next
    });
    const auto beginOf = [&](idx_t part) {
        return partBegin(
                setup_.numVectors, plan_.tileVectors, int(part), parts());
    };
    parallelForOwn(setup_.team, parts(), [&](idx_t part, int) {
        std::vector<RescoreList<T>> lists;
        lists.reserve(rows);
        for (const Attempt& attempt : attempts) {
            // In the order of the parts, as the candidates are.
            CandidateId<T>* const end = attempt.ids + attempt.count;
            CandidateId<T>* const from =
                    std::lower_bound(attempt.ids, end, beginOf(part));
            CandidateId<T>* const to =
                    std::lower_bound(from, end, beginOf(part + 1));
            if (to > from) {
                lists.push_back(
                        {attempt.query,
                         from,
                         to - from,
                         attempt.keys + (from - attempt.ids)});
            }
        }
        rescore(certifier, lists.data(), idx_t(lists.size()));
    });
    parallelFor(setup_.team, threads, rows, [&](idx_t row, int thread) {
        settle(first + row,
               attempts[row],
               scratch_[thread],
               certifier,
               bound,
               out);
    });
}

template class KnnSelection<float>;
template class KnnSelection<double>;

} // namespace faiss_bits::cpu
