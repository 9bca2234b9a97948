#include "faiss_bits/metric_space/MetricContents.h"

#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <typeinfo>

#include <faiss/impl/FaissAssert.h>

#include "faiss_bits/common/FaissErrors.h"
#include "faiss_bits/common/FaissMetric.h"
#include "kernels/canonical/TrueDistance.h"
#include "kernels/metric_space/MetricChecks.h"
#include "kernels/metric_space/cpu/Build.h"

namespace faiss_bits::detail {

namespace {

constexpr char kMagic[8] = {'f', 'b', 'i', 't', 's', 'M', 'S', '1'};
constexpr idx_t kMaxVectors = std::numeric_limits<int32_t>::max();

/// FNV-1a over 64-bit words and what is left of them.
class Sum {
   public:
    void add(const void* data, size_t bytes) {
        const char* from = static_cast<const char*>(data);
        for (; bytes >= sizeof(uint64_t); bytes -= sizeof(uint64_t)) {
            uint64_t word;
            std::memcpy(&word, from, sizeof(word));
            take(word);
            from += sizeof(word);
        }
        for (; bytes > 0; --bytes) {
            take(uint8_t(*from++));
        }
    }
    uint64_t value = 0xcbf29ce484222325ull;

   private:
    void take(uint64_t word) {
        value = (value ^ word) * 0x100000001b3ull;
        value ^= value >> 29;
    }
};

/// A file whose name is in every message.
class File {
   public:
    File(const char* fname, const char* mode) : name_(fname) {
        file_.reset(std::fopen(fname, mode));
        FAISS_THROW_IF_NOT_FMT(
                file_,
                "fname = %s cannot be opened: %s",
                fname,
                std::strerror(errno));
    }

    void write(const void* data, size_t bytes) {
        sum_.add(data, bytes);
        writeAll(data, bytes);
    }
    void read(void* data, size_t bytes) {
        readAll(data, bytes);
        sum_.add(data, bytes);
    }
    template <class T>
    void write(const T& value) {
        write(&value, sizeof(value));
    }
    template <class T>
    T read() {
        T value;
        read(&value, sizeof(value));
        return value;
    }
    template <class T>
    void write(const std::vector<T>& values) {
        write(uint64_t(values.size()));
        write(values.data(), values.size() * sizeof(T));
    }
    /// No more than `most` values: what a file says of a size is not to be
    /// believed.
    template <class T>
    std::vector<T> readSome(uint64_t most) {
        const auto count = read<uint64_t>();
        require(count <= most, "has a size that does not fit");
        std::vector<T> values(count);
        read(values.data(), count * sizeof(T));
        return values;
    }

    void finishWriting() {
        writeAll(&sum_.value, sizeof(sum_.value));
        FAISS_THROW_IF_NOT_FMT(
                std::fclose(file_.release()) == 0,
                "fname = %s cannot be written: %s",
                name_.c_str(),
                std::strerror(errno));
    }
    void finishReading() {
        uint64_t value = 0;
        readAll(&value, sizeof(value));
        require(value == sum_.value, "was changed: its sum is another");
        require(std::fgetc(file_.get()) == EOF, "goes on behind its end");
    }
    void require(bool isGood, const char* what) const {
        FAISS_THROW_IF_NOT_FMT(isGood, "fname = %s %s", name_.c_str(), what);
    }

   private:
    struct Close {
        void operator()(std::FILE* file) const {
            std::fclose(file);
        }
    };

    void writeAll(const void* data, size_t bytes) {
        FAISS_THROW_IF_NOT_FMT(
                bytes == 0 || std::fwrite(data, bytes, 1, file_.get()) == 1,
                "fname = %s cannot be written: %s",
                name_.c_str(),
                std::strerror(errno));
    }
    void readAll(void* data, size_t bytes) {
        require(bytes == 0 || std::fread(data, bytes, 1, file_.get()) == 1,
                "is cut off");
    }

    const std::string name_;
    std::unique_ptr<std::FILE, Close> file_;
    Sum sum_;
};

/// A file of that many vectors has at least as many bytes.
void requireFileSize(const char* fname, uint64_t bytes) {
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(
            std::fopen(fname, "rb"), std::fclose);
    const bool isLong = file && std::fseek(file.get(), 0, SEEK_END) == 0 &&
            uint64_t(std::ftell(file.get())) >= bytes;
    FAISS_THROW_IF_NOT_FMT(isLong, "fname = %s is cut off", fname);
}

} // namespace

Metric trueMetricOf(faiss::MetricType metric) {
    const std::optional<Metric> known = findMetric(metric);
    FAISS_THROW_IF_NOT_FMT(
            known && canonical::hasTrueDistance(*known),
            "metric = %d is not supported: METRIC_L2 (%d), METRIC_L1 (%d) and "
            "METRIC_Linf (%d) are, for which the triangle inequality holds",
            int(metric),
            int(faiss::METRIC_L2),
            int(faiss::METRIC_L1),
            int(faiss::METRIC_Linf));
    return *known;
}

faiss::MetricType faissMetricOf(Metric metric) {
    return metric == Metric::L1      ? faiss::METRIC_L1
            : metric == Metric::Linf ? faiss::METRIC_Linf
                                     : faiss::METRIC_L2;
}

void requireNoFilter(const faiss::SearchParameters* params) {
    if (params) {
        FAISS_THROW_IF_NOT_FMT(
                typeid(*params) == typeid(faiss::SearchParameters),
                "params is a %s, of which this index knows nothing",
                faiss::demangle_cpp_symbol(typeid(*params).name()).c_str());
        FAISS_THROW_IF_NOT_MSG(
                !params->sel,
                "params->sel is set, but indexes for metric spaces have no "
                "filters");
    }
}

void requireRoomFor(idx_t ntotal, idx_t n, const float* x) {
    requireCount(n, "n");
    if (n > 0) {
        requireNotNull(x, "x");
    }
    FAISS_THROW_IF_NOT_FMT(
            n <= kMaxVectors - ntotal,
            "n = %lld: with the %lld vectors that are there, that is more "
            "than %lld",
            (long long)n,
            (long long)ntotal,
            (long long)kMaxVectors);
}

void writeMetricFile(const char* fname, const MetricContents& c) {
    requireNotNull(fname, "fname");
    File file(fname, "wb");
    file.write(kMagic, sizeof(kMagic));
    file.write(uint32_t(c.kind));
    file.write(uint32_t(faissMetricOf(c.metric)));
    file.write(int64_t(c.d));
    file.write(int64_t(c.n));
    file.write(int64_t(c.listOptions.bucketSize));
    file.write(uint64_t(c.listOptions.seed));
    file.write(double(c.pivotOptions.alpha));
    file.write(int64_t(c.pivotOptions.maxPivots));
    file.write(uint64_t(c.isBuilt));
    file.write(c.vectors);
    if (c.isBuilt && c.kind == MetricIndexKind::ListOfClusters) {
        file.write(c.list.centers);
        file.write(c.list.radii);
        file.write(c.list.members);
        file.write(c.list.rest);
    } else if (c.isBuilt) {
        file.write(c.table.pivots);
        file.write(c.table.order);
        file.write(c.table.maxDistance);
        file.write(c.table.rest);
    }
    file.finishWriting();
}

MetricContents readMetricFile(const char* fname, MetricIndexKind kind) {
    requireNotNull(fname, "fname");
    File file(fname, "rb");
    char magic[sizeof(kMagic)];
    file.read(magic, sizeof(magic));
    file.require(
            std::memcmp(magic, kMagic, sizeof(magic)) == 0,
            "is no file of an index for metric spaces");
    MetricContents c;
    c.kind = MetricIndexKind(file.read<uint32_t>());
    file.require(c.kind == kind, "is of another kind of index");
    c.metric = trueMetricOf(faiss::MetricType(file.read<uint32_t>()));
    const auto d = file.read<int64_t>();
    const auto n = file.read<int64_t>();
    file.require(1 <= d && d <= INT32_MAX, "has a d that does not fit");
    file.require(0 <= n && n <= kMaxVectors, "has an n that does not fit");
    c.d = int(d);
    c.n = n;
    c.listOptions.bucketSize = int(file.read<int64_t>());
    c.listOptions.seed = file.read<uint64_t>();
    c.pivotOptions.alpha = file.read<double>();
    c.pivotOptions.maxPivots = int(file.read<int64_t>());
    c.isBuilt = file.read<uint64_t>() != 0;
    requireFileSize(fname, uint64_t(n) * uint64_t(d) * sizeof(float));
    c.vectors = file.readSome<float>(uint64_t(n) * uint64_t(d));
    if (c.isBuilt && c.kind == MetricIndexKind::ListOfClusters) {
        c.list.bucketSize = c.listOptions.bucketSize;
        c.list.centers = file.readSome<idx_t>(n);
        c.list.radii = file.readSome<float>(n);
        c.list.members = file.readSome<idx_t>(n);
        c.list.rest = file.readSome<idx_t>(n);
    } else if (c.isBuilt) {
        c.table.pivots = file.readSome<idx_t>(n);
        c.table.order = file.readSome<idx_t>(n);
        c.table.maxDistance = file.read<double>();
        c.table.rest = file.readSome<idx_t>(n);
    }
    file.finishReading();
    file.require(
            c.vectors.size() == size_t(n) * size_t(d),
            "has a number of vectors that does not fit");
    withFaissErrors([&] {
        metric_space::checkOptions(c.listOptions);
        metric_space::checkOptions(c.pivotOptions);
        if (c.isBuilt && c.kind == MetricIndexKind::ListOfClusters) {
            metric_space::checkListOfClusters(c.list, c.n);
        } else if (c.isBuilt) {
            metric_space::checkPivotTable(c.table, c.n);
        }
    });
    return c;
}

} // namespace faiss_bits::detail
