#include "benchs/ivf/IvfReference.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "benchs/common/DeviceData.h"
#include "benchs/common/Labels.h"
#include "benchs/ivf/IvfData.h"

namespace faiss_bits::bench {

namespace {

/// float32 rounds a distance once; FAISS's CPU decodes codes with other
/// roundings than its GPU, each of some 2^-23 of a component.
constexpr double kRounding = 0x1p-23;
constexpr double kDecoding = 0x1p-20;

double squared(const float* x, int d) {
    double sum = 0;
    for (int c = 0; c < d; ++c) {
        sum += double(x[c]) * x[c];
    }
    return sum;
}

double keyOf(const float* x, const float* y, int d, bool isL2) {
    double sum = 0;
    for (int c = 0; c < d; ++c) {
        const double difference = double(x[c]) - y[c];
        sum += isL2 ? difference * difference : double(x[c]) * y[c];
    }
    return isL2 ? sum : -sum;
}

} // namespace

IvfReference::IvfReference(
        IvfIndexes& indexes,
        const float* queries,
        const float* onDevice)
        : indexes_(indexes), queries_(queries), onDevice_(onDevice) {}

const IvfReference::List& IvfReference::list(int64_t number) {
    const auto [at, isNew] = lists_.try_emplace(number);
    if (isNew) {
        const auto ids = indexes_.ours().getListIndices(int(number));
        at->second.ids.assign(ids.begin(), ids.end());
        at->second.vectors = indexes_.decoded(number);
    }
    return at->second;
}

const IvfReference::Keys& IvfReference::keys(int64_t query, int nprobe) {
    const auto [at, isNew] = keys_.try_emplace({query, nprobe});
    Keys& result = at->second;
    if (!isNew) {
        return result;
    }
    const int d = indexes_.shape().d;
    const bool isL2 = indexes_.shape().metric == faiss::METRIC_L2;
    const int probes = std::min(nprobe, indexes_.shape().nlist);
    DeviceArray<float> toLists(probes);
    DeviceArray<int64_t> probed(probes);
    indexes_.ours().quantizer->search(
            1, onDevice_ + query * d, probes, toLists.data(), probed.data());
    const auto numbers = downloadLabels(probed, probes);
    for (int64_t number : numbers) {
        list(number);
    }
    result.assign(indexes_.ours().ntotal, NAN);
    forAll(int64_t(numbers.size()), [&](int64_t i) {
        const List& list = lists_.at(numbers[i]);
        for (size_t v = 0; v < list.ids.size(); ++v) {
            result[list.ids[v]] = keyOf(
                    queries_ + query * d, list.vectors.data() + v * d, d, isL2);
        }
    });
    return result;
}

IvfReference::Found IvfReference::check(
        int64_t query,
        int nprobe,
        int k,
        const int64_t* labels,
        const float* distances,
        const std::vector<bool>* members) {
    const IvfShape& shape = indexes_.shape();
    const bool isL2 = shape.metric == faiss::METRIC_L2;
    const Keys& keys = this->keys(query, nprobe);
    const auto mayBeFound = [&](int64_t id) {
        return id >= 0 && id < int64_t(keys.size()) && !std::isnan(keys[id]) &&
                (!members || (*members)[id]);
    };
    std::vector<double> want;
    for (int64_t id = 0; id < int64_t(keys.size()); ++id) {
        if (mayBeFound(id)) {
            want.push_back(keys[id]);
        }
    }
    const size_t count = std::min<size_t>(k, want.size());
    std::partial_sort(want.begin(), want.begin() + count, want.end());
    want.resize(count);
    // |x|^2 + |y|^2, of which an error in components is a part.
    const double ofQuery = squared(queries_ + query * shape.d, shape.d);
    const double scale =
            2 * (ofQuery + (isL2 && !want.empty() ? std::abs(want.back()) : 0));
    const double decoding = shape.kind.isFlat() ? 0 : kDecoding * scale;
    Found found;
    found.places = int64_t(want.size());
    std::set<int64_t> before;
    for (int place = 0; place < k; ++place) {
        const int64_t label = labels[place];
        if (place >= int(want.size())) {
            found.wrong += label != -1;
            continue;
        }
        if (!mayBeFound(label) || !before.insert(label).second) {
            ++found.wrong;
            continue;
        }
        const double key = keys[label];
        const double got = isL2 ? distances[place] : -distances[place];
        const double slack = decoding + kRounding * std::abs(key);
        found.wrong +=
                !(std::abs(got - key) <= slack &&
                  std::abs(got - want[place]) <= slack);
        found.among += key <= want.back() + slack;
    }
    return found;
}

} // namespace faiss_bits::bench
