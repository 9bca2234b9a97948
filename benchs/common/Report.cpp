#include "benchs/common/Report.h"

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include "faiss_bits/common/FaissCompat.h"
#include "kernels/common/CudaCheck.h"

namespace faiss_bits::bench {

namespace {

/// From NVML, opened by name so that the bench needs no link with it.
std::string driverFromNvml() {
    void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        return "";
    }
    using Init = int (*)();
    using GetVersion = int (*)(char*, unsigned);
    const auto init = reinterpret_cast<Init>(dlsym(library, "nvmlInit_v2"));
    const auto getVersion = reinterpret_cast<GetVersion>(
            dlsym(library, "nvmlSystemGetDriverVersion"));
    char text[96] = "";
    if (init && getVersion && init() == 0) {
        (void)getVersion(text, sizeof(text));
    }
    return text;
}

/// "NVRM version: NVIDIA UNIX ... Module  580.1.2  ...": the first word that
/// starts with a digit and has a point.
std::string driverFromProc() {
    std::ifstream file("/proc/driver/nvidia/version");
    std::string word;
    while (file >> word) {
        if (std::isdigit((unsigned char)word[0]) &&
            word.find('.') != std::string::npos) {
            return word;
        }
    }
    return "unknown";
}

std::string quoted(const std::string& value) {
    std::string text = "\"";
    for (char c : value) {
        if (c == '"' || c == '\\') {
            text += '\\';
        }
        text += c;
    }
    return text + "\"";
}

} // namespace

std::string faissVersion() {
    return std::to_string(FAISS_VERSION_MAJOR) + "." +
            std::to_string(FAISS_VERSION_MINOR) + "." +
            std::to_string(FAISS_VERSION_PATCH);
}

Meta collectMeta(const Options& options, double readBandwidth) {
    int device = 0;
    int runtime = 0;
    cudaDeviceProp properties;
    BITS_CUDA_CHECK(cudaGetDevice(&device));
    BITS_CUDA_CHECK(cudaGetDeviceProperties(&properties, device));
    BITS_CUDA_CHECK(cudaRuntimeGetVersion(&runtime));

    Meta meta;
    meta.gpu = properties.name;
    meta.computeCapability = properties.major * 10 + properties.minor;
    meta.driver = driverFromNvml();
    if (meta.driver.empty()) {
        meta.driver = driverFromProc();
    }
    meta.cuda = std::to_string(runtime / 1000) + "." +
            std::to_string(runtime % 1000 / 10);
    meta.faiss = faissVersion();
    meta.commit = options.commit;
    meta.date = options.date;
    meta.readBandwidth = readBandwidth;
    return meta;
}

Row& Row::text(const char* name, const std::string& value) {
    fields_ +=
            (fields_.empty() ? "" : ", ") + quoted(name) + ": " + quoted(value);
    return *this;
}

Row& Row::integer(const char* name, int64_t value) {
    fields_ += (fields_.empty() ? "" : ", ") + quoted(name) + ": " +
            std::to_string(value);
    return *this;
}

Row& Row::number(const char* name, double value) {
    char text[40];
    std::snprintf(text, sizeof(text), "%.5g", value);
    // JSON knows neither inf nor nan.
    fields_ += (fields_.empty() ? "" : ", ") + quoted(name) + ": " +
            (std::isfinite(value) ? text : "null");
    return *this;
}

std::string Row::json() const {
    return "{" + fields_ + "}";
}

Report::Report(std::string path, const Meta& meta, double saveSeconds)
        : path_(std::move(path)), saveSeconds_(saveSeconds) {
    Row row;
    row.text("gpu", meta.gpu)
            .integer("compute_capability", meta.computeCapability)
            .text("driver", meta.driver)
            .text("cuda", meta.cuda)
            .text("faiss", meta.faiss);
    for (const auto& [library, version] : meta.versions) {
        row.text(library.c_str(), version);
    }
    row.text("commit", meta.commit)
            .text("date", meta.date)
            .number("read_bw_gbps", meta.readBandwidth);
    if (meta.seed) {
        row.integer("seed", int64_t(meta.seed));
    }
    meta_ = row.json();
    const auto folder = std::filesystem::path(path_).parent_path();
    if (!folder.empty()) {
        std::filesystem::create_directories(folder);
    }
    save();
}

void Report::add(const Row& row) {
    rows_.push_back(row.json());
    if (std::chrono::steady_clock::now() - saved_ >= saveSeconds_) {
        save();
    }
}

void Report::save() {
    const std::string part = path_ + ".part";
    {
        std::ofstream file(part);
        file << "{\"meta\": " << meta_ << ",\n \"rows\": [";
        for (size_t i = 0; i < rows_.size(); ++i) {
            file << (i ? ",\n  " : "\n  ") << rows_[i];
        }
        file << "\n ]}\n";
        if (!file.flush()) {
            throw std::runtime_error("cannot write " + part);
        }
    }
    std::filesystem::rename(part, path_);
    saved_ = std::chrono::steady_clock::now();
}

} // namespace faiss_bits::bench
