#include "benchs/many/SearchTimes.h"

#include "benchs/common/Labels.h"
#include "benchs/common/Timing.h"
#include "benchs/many/ManyPlaces.h"

namespace faiss_bits::bench {

Answers Outputs::download() const {
    Answers answers;
    answers.labels = downloadLabels(labels, labels.size());
    answers.distances = bench::download(distances);
    return answers;
}

SearchTimes::SearchTimes(int64_t mostQueries, int64_t d)
        : queries_(randomVectors(mostQueries, d, 2)),
          hostQueries_(download(queries_)) {}

double SearchTimes::onDevice(
        const faiss::Index& index,
        int64_t q,
        int64_t k,
        const Outputs& out) {
    TimingMode mode;
    mode.wallClock = true;
    mode.before = [&] { flush(); };
    const auto search = [&](int) {
        index.search(
                q, queries_.data(), k, out.distances.data(), out.labels.data());
    };
    return timeCall(search, mode).ms;
}

double SearchTimes::onHost(const faiss::Index& index, int64_t q, int64_t k) {
    ofHost.resize(q * k);
    TimingMode mode;
    mode.wallClock = true;
    mode.before = [&] { flush(); };
    mode.leastRepeats = 3;
    const auto search = [&](int) {
        index.search(
                q,
                hostQueries_.data(),
                k,
                ofHost.distances.data(),
                ofHost.labels.data());
    };
    return timeCall(search, mode).ms;
}

} // namespace faiss_bits::bench
