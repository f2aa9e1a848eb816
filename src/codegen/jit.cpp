// Jit over ORC's LLJIT: one JITDylib a module, so that names cannot clash and all of it can go.
#include "codegen/jit.h"

#include <atomic>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "codegen/llvm_headers.h"

namespace prong::codegen {

namespace {

// What ORC reported on this thread since the last failure. The error that a lookup returns names
// only what could not be made; the reason (a symbol nobody defined) goes to the session's reporter.
thread_local std::string reasons;

[[noreturn]] void fail(std::string_view name, std::string_view what, std::string detail) {
  detail += std::exchange(reasons, {});
  throw_error(ErrorKind::kInternal, cat("codegen: module '", name, "' ", what, ": ", detail));
}

template <class T>
T take(llvm::Expected<T> value, std::string_view name, std::string_view what) {
  if (!value) fail(name, what, llvm::toString(value.takeError()));
  return std::move(*value);
}

void take(llvm::Error error, std::string_view name, std::string_view what) {
  if (error) fail(name, what, llvm::toString(std::move(error)));
}

void initialize_target() {
  static const bool ok =
      !llvm::InitializeNativeTarget() && !llvm::InitializeNativeTargetAsmPrinter();
  PRONG_CHECK(ok, kInternal, "codegen: this LLVM was built without this machine's target");
}

llvm::StringRef ref(std::string_view text) { return {text.data(), text.size()}; }

std::string print(const llvm::Module& module) {
  std::string text;
  llvm::raw_string_ostream out(text);
  module.print(out, nullptr);
  return text;
}

}  // namespace

struct Jit::State {
  JitOptions options;
  std::string cpu, features;
  std::unique_ptr<llvm::orc::LLJIT> lljit;
  llvm::orc::JITDylib* outside = nullptr;  // what define() was told of
  std::atomic<uint64_t> modules{0};

  explicit State(JitOptions options);
  std::unique_ptr<llvm::TargetMachine> target_machine(std::string_view name) const;
  std::unique_ptr<llvm::Module> parse(llvm::LLVMContext& context, std::string_view ir,
                                      std::string_view name) const;
  void optimize(llvm::Module& module, std::string_view name) const;
  void define(std::string_view name, void* address);

 private:
  llvm::orc::JITTargetMachineBuilder host() const;
};

Jit::State::State(JitOptions options) : options(options) {
  initialize_target();
  llvm::orc::JITTargetMachineBuilder builder = host();
  cpu = builder.getCPU();
  features = builder.getFeatures().getString();
  // All work of a compile happens on the thread that asked for it: threads are the runtime's
  // affair.
  auto process = take(llvm::orc::SelfExecutorProcessControl::Create(
                          nullptr, std::make_unique<llvm::orc::InPlaceTaskDispatcher>()),
                      "", "cannot start");
  lljit = take(llvm::orc::LLJITBuilder()
                   .setExecutorProcessControl(std::move(process))
                   .setJITTargetMachineBuilder(std::move(builder))
                   .setLinkProcessSymbolsByDefault(false)
                   .setPlatformSetUp(llvm::orc::setUpInactivePlatform)
                   .setSupportConcurrentCompilation(true)
                   .create(),
               "", "cannot start");
  lljit->getExecutionSession().setErrorReporter(
      [](llvm::Error error) { reasons += cat("\n", llvm::toString(std::move(error))); });
  outside = &lljit->getExecutionSession().createBareJITDylib("outside");
  define("memcpy", reinterpret_cast<void*>(&std::memcpy));
  define("memmove", reinterpret_cast<void*>(&std::memmove));
  define("memset", reinterpret_cast<void*>(&std::memset));
}

llvm::orc::JITTargetMachineBuilder Jit::State::host() const {
  auto builder = take(llvm::orc::JITTargetMachineBuilder::detectHost(), "", "cannot start");
  builder.getOptions().AllowFPOpFusion = llvm::FPOpFusion::Strict;
  builder.setCodeGenOptLevel(options.level >= 3   ? llvm::CodeGenOptLevel::Aggressive
                             : options.level >= 1 ? llvm::CodeGenOptLevel::Default
                                                  : llvm::CodeGenOptLevel::None);
  return builder;
}

std::unique_ptr<llvm::TargetMachine> Jit::State::target_machine(std::string_view name) const {
  return take(host().createTargetMachine(), name, "cannot be compiled");
}

std::unique_ptr<llvm::Module> Jit::State::parse(llvm::LLVMContext& context, std::string_view ir,
                                                std::string_view name) const {
  llvm::SMDiagnostic diagnostic;
  auto module = llvm::parseAssembly(llvm::MemoryBufferRef(ref(ir), ref(name)), diagnostic, context);
  if (!module) {
    fail(name, "is not valid IR",
         cat("line ", diagnostic.getLineNo(), ", column ", diagnostic.getColumnNo() + 1, ": ",
             diagnostic.getMessage().str(), "\n", diagnostic.getLineContents().str()));
  }
  std::string complaint;
  llvm::raw_string_ostream out(complaint);
  if (llvm::verifyModule(*module, &out)) fail(name, "breaks a rule of the IR", complaint);
  if (options.vector_bits > 0) {
    for (llvm::Function& function : *module)
      function.addFnAttr("prefer-vector-width", std::to_string(options.vector_bits));
  }
  return module;
}

void Jit::State::optimize(llvm::Module& module, std::string_view name) const {
  auto machine = target_machine(name);
  module.setDataLayout(machine->createDataLayout());
  module.setTargetTriple(machine->getTargetTriple());

  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager call_graph;
  llvm::ModuleAnalysisManager modules;
  // No library function is known to the optimiser: it would fold tanhf of a constant with its own
  // rounding, while eager code uses our polynomial.
  llvm::TargetLibraryInfoImpl no_library(module.getTargetTriple());
  no_library.disableAllFunctions();
  functions.registerPass([&] { return llvm::TargetLibraryAnalysis(no_library); });

  llvm::PassBuilder passes(machine.get());
  passes.registerModuleAnalyses(modules);
  passes.registerCGSCCAnalyses(call_graph);
  passes.registerFunctionAnalyses(functions);
  passes.registerLoopAnalyses(loops);
  passes.crossRegisterProxies(loops, functions, call_graph, modules);

  using llvm::OptimizationLevel;
  if (options.level <= 0) {
    passes.buildO0DefaultPipeline(OptimizationLevel::O0).run(module, modules);
    return;
  }
  OptimizationLevel level = options.level == 1   ? OptimizationLevel::O1
                            : options.level == 2 ? OptimizationLevel::O2
                                                 : OptimizationLevel::O3;
  passes.buildPerModuleDefaultPipeline(level).run(module, modules);
}

void Jit::State::define(std::string_view name, void* address) {
  llvm::orc::SymbolMap symbols;
  symbols[lljit->mangleAndIntern(ref(name))] = {llvm::orc::ExecutorAddr::fromPtr(address),
                                                llvm::JITSymbolFlags::Exported |
                                                    llvm::JITSymbolFlags::Callable};
  take(outside->define(llvm::orc::absoluteSymbols(std::move(symbols))), name, "cannot be defined");
}

namespace {

// Holds what it needs of the Jit: the code lives in the Jit's memory.
class LoadedCode final : public Code {
 public:
  LoadedCode(std::shared_ptr<void> jit, llvm::orc::LLJIT& lljit, llvm::orc::JITDylib& dylib,
             std::string name)
      : jit_(std::move(jit)), lljit_(lljit), dylib_(dylib), name_(std::move(name)) {}

  ~LoadedCode() override {
    llvm::consumeError(lljit_.getExecutionSession().removeJITDylib(dylib_));
  }

  void* find(std::string_view function) const override {
    auto address = take(lljit_.lookup(dylib_, ref(function)), name_, "cannot be linked");
    return address.toPtr<void*>();
  }

 private:
  std::shared_ptr<void> jit_;
  llvm::orc::LLJIT& lljit_;
  llvm::orc::JITDylib& dylib_;
  std::string name_;
};

}  // namespace

Jit::Jit(JitOptions options) : state_(std::make_shared<State>(options)) {}
Jit::~Jit() = default;

void Jit::define(std::string_view name, void* address) { state_->define(name, address); }

std::shared_ptr<const Code> Jit::compile(std::string_view ir, std::string_view name) {
  auto context = std::make_unique<llvm::LLVMContext>();
  auto module = state_->parse(*context, ir, name);
  state_->optimize(*module, name);
  llvm::SmallVector<std::string> defined;
  for (const llvm::Function& function : *module)
    if (!function.isDeclaration() && !function.hasLocalLinkage())
      defined.push_back(function.getName().str());

  llvm::orc::LLJIT& lljit = *state_->lljit;
  auto& dylib =
      lljit.getExecutionSession().createBareJITDylib(cat(name, "#", state_->modules.fetch_add(1)));
  auto code = std::make_shared<LoadedCode>(state_, lljit, dylib, std::string(name));
  dylib.addToLinkOrder(*state_->outside);
  take(lljit.addIRModule(dylib, {std::move(module), std::move(context)}), name,
       "cannot be compiled");
  // ORC compiles on the first lookup: make it now, so that errors and time belong to compile().
  for (const std::string& function : defined) code->find(function);
  return code;
}

std::string Jit::optimized(std::string_view ir, std::string_view name) const {
  llvm::LLVMContext context;
  auto module = state_->parse(context, ir, name);
  state_->optimize(*module, name);
  return print(*module);
}

const std::string& Jit::cpu() const { return state_->cpu; }
const std::string& Jit::features() const { return state_->features; }

}  // namespace prong::codegen
