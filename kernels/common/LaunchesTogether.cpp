#include "kernels/common/LaunchesTogether.h"

#include <algorithm>
#include <map>
#include <vector>

#include "kernels/common/ContextId.h"
#include "kernels/common/Error.h"
#include "kernels/common/KernelLaunch.h"
#include "kernels/common/PerDevice.h"

namespace faiss_bits {

namespace {

using Launches = std::array<LaunchOfKernel, LaunchesTogether::kCount>;

/// Streams of a device that have a graph; more launch one kernel after another.
/// A graph goes with its context.
constexpr size_t kMostGraphs = 16;

thread_local LaunchesTogether* current = nullptr;

/// What a thread's launches are copied to: 3 KB, made once.
Launches& launchesOfThread() {
    static thread_local Launches launches;
    return launches;
}

void launch(const LaunchOfKernel& one, cudaStream_t stream) {
    KernelLaunch(
            one.kernel,
            one.blocks,
            one.threads,
            allowSharedBytes(one.kernel, one.sharedBytes),
            stream)
            .early()
            .enqueueBytes(one.params.data());
}

cudaKernelNodeParams nodeOf(const LaunchOfKernel& one, void** arguments) {
    arguments[0] = const_cast<std::byte*>(one.params.data());
    cudaKernelNodeParams node = {};
    node.func = const_cast<void*>(one.kernel);
    node.gridDim = one.blocks;
    node.blockDim = dim3(one.threads);
    node.sharedMemBytes = unsigned(one.sharedBytes);
    node.kernelParams = arguments;
    return node;
}

/// Of a stream: launches one behind another, each of which may start early, as
/// a graph that can be launched again, with other kernels and arguments.
struct StreamGraph {
    cudaGraphExec_t graph = nullptr;
    std::array<cudaGraphNode_t, LaunchesTogether::kCount> nodes = {};
    Launches launches; // what it would do
};

/// What a program's other threads capture is not ours.
class RelaxedCapture {
   public:
    RelaxedCapture() {
        (void)cudaThreadExchangeStreamCaptureMode(&mode_);
    }
    ~RelaxedCapture() {
        (void)cudaThreadExchangeStreamCaptureMode(&mode_);
    }
    RelaxedCapture(const RelaxedCapture&) = delete;
    RelaxedCapture& operator=(const RelaxedCapture&) = delete;

   private:
    cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

bool isDone(cudaError_t status) {
    if (status != cudaSuccess) {
        (void)cudaGetLastError(); // nobody's error: there is another way
    }
    return status == cudaSuccess;
}

/// Captured from a stream that nobody else has: the kinds of edges are those of
/// ordinary launches, whatever the version of CUDA calls them.
cudaGraph_t capture(const Launches& launches) {
    cudaStream_t stream = nullptr;
    if (!isDone(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking))) {
        return nullptr;
    }
    cudaGraph_t graph = nullptr;
    if (isDone(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed))) {
        try {
            for (const LaunchOfKernel& one : launches) {
                launch(one, stream);
            }
        } catch (const Error&) {
            // The capture has ended with nothing.
            (void)cudaGetLastError();
        }
        if (!isDone(cudaStreamEndCapture(stream, &graph))) {
            graph = nullptr;
        }
    }
    (void)isDone(cudaStreamDestroy(stream));
    return graph;
}

/// Whether node i is that of launch i.
bool areInOrder(const StreamGraph& made) {
    for (size_t i = 0; i < made.nodes.size(); ++i) {
        const LaunchOfKernel& one = made.launches[i];
        cudaKernelNodeParams node = {};
        if (!isDone(cudaGraphKernelNodeGetParams(made.nodes[i], &node)) ||
            node.gridDim.x != one.blocks.x || node.gridDim.y != one.blocks.y ||
            node.blockDim.x != one.threads ||
            node.sharedMemBytes != one.sharedBytes) {
            return false;
        }
    }
    return true;
}

/// graph stays null where CUDA cannot.
void make(const Launches& launches, StreamGraph& made) {
    const RelaxedCapture relaxed;
    made.launches = launches;
    for (const LaunchOfKernel& one : launches) {
        (void)canWaitForPrevious(one.kernel); // so that it is loaded
    }
    cudaGraph_t graph = capture(launches);
    if (!graph) {
        return;
    }
    size_t count = 0;
    if (isDone(cudaGraphGetNodes(graph, nullptr, &count)) &&
        count == made.nodes.size() &&
        isDone(cudaGraphGetNodes(graph, made.nodes.data(), &count)) &&
        areInOrder(made) &&
        isDone(cudaGraphInstantiateWithFlags(&made.graph, graph, 0))) {
        return; // the graph stays, as its nodes name those that are launched
    }
    made.graph = nullptr;
    (void)isDone(cudaGraphDestroy(graph));
}

/// Whether it is launched.
bool launchGraph(
        StreamGraph& made,
        const Launches& launches,
        cudaStream_t stream) {
    for (size_t i = 0; i < launches.size(); ++i) {
        const LaunchOfKernel& one = launches[i];
        LaunchOfKernel& before = made.launches[i];
        if (one == before) {
            continue;
        }
        if (canWaitForPrevious(one.kernel) !=
            canWaitForPrevious(before.kernel)) {
            return false; // other edges
        }
        (void)allowSharedBytes(one.kernel, one.sharedBytes);
        void* arguments[1];
        const cudaKernelNodeParams node = nodeOf(one, arguments);
        if (!isDone(cudaGraphExecKernelNodeSetParams(
                    made.graph, made.nodes[i], &node))) {
            before.paramBytes = 0; // not known: the next call sets it
            return false;
        }
        before = one;
    }
    BITS_CUDA_CHECK(cudaGraphLaunch(made.graph, stream));
    return true;
}

bool isCaptured(cudaStream_t stream) {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    return !isDone(cudaStreamIsCapturing(stream, &status)) ||
            status != cudaStreamCaptureStatusNone;
}

bool launchAsGraph(const Launches& launches, cudaStream_t stream) {
    const uint64_t context = contextId();
    if (context == 0 || isCaptured(stream)) {
        return false;
    }
    int device = 0;
    BITS_CUDA_CHECK(cudaGetDevice(&device));
    struct Graphs {
        uint64_t context = 0;
        std::map<cudaStream_t, StreamGraph> ofStreams;
    };
    // Never destroyed: kernels may be launched while a program ends.
    static auto& graphs = *new PerDevice<std::map<int, Graphs>>;
    return graphs.with(device, [&](auto& map) {
        Graphs& known = map[device];
        if (known.context != context) { // the old ones went with theirs
            known.ofStreams.clear();
            known.context = context;
        }
        auto found = known.ofStreams.find(stream);
        if (found == known.ofStreams.end()) {
            if (known.ofStreams.size() >= kMostGraphs) {
                return false;
            }
            found = known.ofStreams.try_emplace(stream).first;
            make(launches, found->second);
        }
        return found->second.graph &&
                launchGraph(found->second, launches, stream);
    });
}

} // namespace

bool LaunchOfKernel::operator==(const LaunchOfKernel& other) const {
    const auto isSame = [](dim3 a, dim3 b) {
        return a.x == b.x && a.y == b.y && a.z == b.z;
    };
    return kernel == other.kernel && isSame(blocks, other.blocks) &&
            threads == other.threads && sharedBytes == other.sharedBytes &&
            paramBytes == other.paramBytes &&
            std::memcmp(params.data(), other.params.data(), paramBytes) == 0;
}

LaunchesTogether::LaunchesTogether(cudaStream_t stream)
        : stream_(stream), launches_(launchesOfThread()) {
    BITS_THROW_IF_NOT_FMT(
            !current, "launches together: there are %d already", 1);
    current = this;
}

LaunchesTogether::~LaunchesTogether() {
    current = nullptr;
}

LaunchesTogether* LaunchesTogether::ofThread() {
    return current;
}

LaunchOfKernel& LaunchesTogether::add() {
    BITS_THROW_IF_NOT_FMT(
            count_ < kCount, "launches together: more than %d", kCount);
    return launches_[size_t(count_++)];
}

bool LaunchesTogether::enqueue() {
    // One that did not come here would have gone before the others.
    BITS_THROW_IF_NOT_FMT(
            count_ == kCount,
            "launches together: %d and not %d",
            count_,
            kCount);
    count_ = 0;
    if (launchAsGraph(launches_, stream_)) {
        return true;
    }
    for (const LaunchOfKernel& one : launches_) {
        launch(one, stream_);
    }
    return false;
}

} // namespace faiss_bits
