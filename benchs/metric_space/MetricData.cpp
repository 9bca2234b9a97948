#include "benchs/metric_space/MetricData.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <random>
#include <stdexcept>

#include "benchs/common/Options.h"
#include "kernels/common/CudaCheck.h"
#include "kernels/metric_space/cpu/RowDistances.h"

namespace faiss_bits::bench {

namespace {

constexpr idx_t kSampleQueries = 100;
constexpr idx_t kSamplePairs = idx_t(1) << 28;

float uniformOf(std::mt19937_64& random) {
    return float(random() % (1 << 24)) / (1 << 24);
}

/// About normal, of deviation 0.5.
float noiseOf(std::mt19937_64& random) {
    const float a = uniformOf(random);
    const float b = uniformOf(random);
    return a + b + uniformOf(random) - 1.5f;
}

std::vector<char> bytesOf(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) {
        throw std::runtime_error(path + " cannot be read");
    }
    return {std::istreambuf_iterator<char>(file), {}};
}

/// In an order that std::shuffle would leave to the library.
void shuffleRows(std::vector<float>& rows, int d, uint64_t seed) {
    std::mt19937_64 random(seed);
    for (idx_t i = idx_t(rows.size()) / d - 1; i > 0; --i) {
        const idx_t j = idx_t(random() % uint64_t(i + 1));
        std::swap_ranges(
                rows.begin() + i * d,
                rows.begin() + (i + 1) * d,
                rows.begin() + j * d);
    }
}

/// The last of the rows are queries: so many, or 20% after a shuffle.
MetricData split(
        const std::string& name,
        std::vector<float> rows,
        int d,
        size_t numQueries,
        uint64_t seed) {
    const size_t n = rows.size() / d;
    if (numQueries == 0) {
        shuffleRows(rows, d, seed);
        numQueries = n - n * 4 / 5;
    }
    if (n < 5 || numQueries >= n) {
        throw std::runtime_error(name + " has too few vectors");
    }
    MetricData data;
    data.name = name;
    data.d = d;
    const size_t stored = (n - numQueries) * d;
    data.vectors.assign(rows.begin(), rows.begin() + stored);
    data.queries.assign(rows.begin() + stored, rows.end());
    return data;
}

} // namespace

MetricData readMetricData(const std::string& spec, uint64_t seed) {
    const std::vector<std::string> parts = splitList(spec, ':');
    const std::string path = parts.size() > 1 ? parts[1] : "";
    const bool areBytes = path.ends_with(".bvecs");
    if (!areBytes && !path.ends_with(".fvecs")) {
        throw std::runtime_error(
                spec + " is neither name:PATH.fvecs nor name:PATH.bvecs");
    }
    const size_t numQueries =
            parts.size() > 2 ? parseNumbers(parts[2]).front() : 0;
    const std::vector<char> bytes = bytesOf(path);
    int32_t d = 0;
    if (bytes.size() >= sizeof(d)) {
        std::memcpy(&d, bytes.data(), sizeof(d));
    }
    const size_t record =
            sizeof(d) + size_t(std::max(d, 1)) * (areBytes ? 1 : sizeof(float));
    if (d < 1 || bytes.size() % record != 0) {
        throw std::runtime_error(path + " is no file of vectors");
    }
    std::vector<float> rows;
    for (size_t at = 0; at < bytes.size(); at += record) {
        for (int c = 0; c < d; ++c) {
            const char* from = bytes.data() + at + sizeof(d);
            float value;
            if (areBytes) {
                value = float(uint8_t(from[c]));
            } else {
                std::memcpy(&value, from + c * sizeof(float), sizeof(float));
            }
            rows.push_back(value);
        }
    }
    return split(parts[0], std::move(rows), d, numQueries, seed);
}

MetricData jitteredCopies(
        const MetricData& data,
        idx_t n,
        float deviation,
        uint64_t seed) {
    std::mt19937_64 random(seed);
    MetricData copies;
    copies.name = data.name + "_copies";
    copies.d = data.d;
    copies.queries = data.queries;
    copies.vectors.resize(size_t(n) * data.d);
    for (size_t i = 0; i < copies.vectors.size(); ++i) {
        copies.vectors[i] = data.vectors[i % data.vectors.size()] +
                2 * deviation * noiseOf(random);
    }
    return copies;
}

MetricData clusteredData(idx_t n, int d, uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<float> centers(1000 * size_t(d));
    for (float& one : centers) {
        one = uniformOf(random);
    }
    std::vector<float> rows(size_t(n + n / 4) * d);
    for (size_t i = 0; i < rows.size() / d; ++i) {
        const size_t center = random() % 1000;
        for (int c = 0; c < d; ++c) {
            rows[i * d + c] = centers[center * d + c] + 0.04f * noiseOf(random);
        }
    }
    return split("clustered", std::move(rows), d, 0, seed);
}

std::vector<float> radiiOfShares(
        const MetricData& data,
        Metric metric,
        idx_t n,
        const std::vector<double>& shares) {
    const auto distance = metric_space::rowDistanceOf(metric);
    const idx_t sample = std::min(
            data.numQueries(),
            std::clamp<idx_t>(
                    kSamplePairs / std::max<idx_t>(n, 1), 1, kSampleQueries));
    std::vector<float> distances;
    for (idx_t q = 0; q < sample; ++q) {
        for (idx_t i = 0; i < n; ++i) {
            distances.push_back(distance(
                    data.vectors.data() + i * data.d,
                    data.queries.data() + q * data.d,
                    data.d));
        }
    }
    std::vector<float> radii;
    for (const double share : shares) {
        const auto place = distances.begin() +
                std::min(distances.size() - 1,
                         size_t(share * double(distances.size())));
        std::nth_element(distances.begin(), place, distances.end());
        radii.push_back(*place);
    }
    return radii;
}

void appendPart(
        const metric_space::MetricRangePart& part,
        cpu::RangeResult<float>& got) {
    std::vector<idx_t> limits(part.rows + 1);
    const size_t before = got.ids.size();
    got.distances.resize(before + part.total);
    got.ids.resize(before + part.total);
    const auto copy = [](void* to, const void* from, size_t bytes) {
        BITS_CUDA_CHECK(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToHost));
    };
    copy(limits.data(), part.limits, limits.size() * sizeof(idx_t));
    copy(got.distances.data() + before,
         part.distances,
         part.total * sizeof(float));
    copy(got.ids.data() + before, part.ids, part.total * sizeof(idx_t));
    for (idx_t i = 1; i <= part.rows; ++i) {
        got.limits.push_back(idx_t(before) + limits[i]);
    }
}

} // namespace faiss_bits::bench
