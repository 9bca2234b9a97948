#include "benchs/many/SearchTimes.h"

#include <functional>

#include "benchs/common/Labels.h"
#include "benchs/many/FaissMany.h"
#include "benchs/many/ManyPlaces.h"
#include "kernels/common/CudaCheck.h"

namespace faiss_bits::bench {

Answers Outputs::download() const {
    Answers answers;
    answers.labels = downloadLabels(labels, labels.size());
    answers.distances = bench::download(distances);
    return answers;
}

SearchTimes::SearchTimes(int64_t mostQueries, int64_t d, int64_t devices)
        : queries_(randomVectors(mostQueries, d, 2)),
          hostQueries_(download(queries_)) {
    for (int64_t device = 1; device < devices; ++device) {
        BITS_CUDA_CHECK(cudaSetDevice(int(device)));
        others_.push_back(std::make_unique<CacheFlush>());
    }
    BITS_CUDA_CHECK(cudaSetDevice(0));
}

void SearchTimes::flush() {
    const auto onOthers = [&](const std::function<void(CacheFlush&)>& f) {
        for (size_t i = 0; i < others_.size(); ++i) {
            BITS_CUDA_CHECK(cudaSetDevice(int(i) + 1));
            f(*others_[i]);
        }
        BITS_CUDA_CHECK(cudaSetDevice(0));
    };
    onOthers([](CacheFlush& flush) { flush.enqueue(); });
    flush_.enqueue();
    onOthers([](CacheFlush&) { BITS_CUDA_CHECK(cudaDeviceSynchronize()); });
}

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

SearchTimes::InTurns SearchTimes::onDeviceInTurns(
        const faiss::Index& all,
        int parts,
        int devices,
        int64_t q,
        int64_t k,
        const Outputs& out) {
    if (parts != devices) {
        return {onDevice(all, q, k, out), 0};
    }
    const DeviceShare share = deviceShareOf(all);
    if (share.ofQueries && q % devices != 0) {
        return {onDevice(all, q, k, out), 0};
    }
    const int64_t shareQ = share.ofQueries ? q / devices : q;
    TimingMode mode;
    mode.wallClock = true;
    mode.before = [&] { flush(); };
    const auto search = [&](const faiss::Index& index, int64_t n) {
        index.search(
                n, queries_.data(), k, out.distances.data(), out.labels.data());
    };
    // All of them last: what is in `out` is theirs.
    const std::vector<Measured> measured = timeInTurns(
            {[&](int) { search(*share.part, shareQ); },
             [&](int) { search(all, q); }},
            mode);
    return {measured[1].ms, measured[0].ms};
}

TimingMode SearchTimes::modeOnHost_() {
    TimingMode mode;
    mode.wallClock = true;
    mode.before = [&] { flush(); };
    mode.leastRepeats = 3;
    return mode;
}

void SearchTimes::searchOnHost(
        const faiss::Index& index,
        int64_t q,
        int64_t k) {
    ofHost.resize(q * k);
    index.search(
            q,
            hostQueries_.data(),
            k,
            ofHost.distances.data(),
            ofHost.labels.data());
}

double SearchTimes::onHost(const faiss::Index& index, int64_t q, int64_t k) {
    const auto search = [&](int) { searchOnHost(index, q, k); };
    return timeCall(search, modeOnHost_()).ms;
}

std::vector<double> SearchTimes::onHostInTurns(
        const std::vector<const faiss::Index*>& indexes,
        int64_t q,
        int64_t k) {
    std::vector<std::function<void(int)>> calls;
    for (const faiss::Index* index : indexes) {
        calls.push_back(
                [this, index, q, k](int) { searchOnHost(*index, q, k); });
    }
    std::vector<double> ms;
    for (const Measured& one : timeInTurns(calls, modeOnHost_())) {
        ms.push_back(one.ms);
    }
    return ms;
}

} // namespace faiss_bits::bench
