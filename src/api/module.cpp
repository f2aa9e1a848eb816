// The public Module: saved scripts, loaded and run without Python.
#include "prong/module.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include "api/access.h"
#include "compile/pipeline.h"
#include "exec/isinstance.h"
#include "exec/run.h"
#include "runtime/future.h"
#include "runtime/parallel.h"

namespace prong::api {

struct Module::Impl {
  Archive archive;

  Object* object() const {
    return archive.root.is_object() ? dynamic_cast<Object*>(archive.root.object()) : nullptr;
  }
  Function& method(const std::string& name) const {
    if (!object()) {
      PRONG_CHECK(name == "forward", kAttribute, "a saved function has no method '", name, "'");
      return *archive.function;
    }
    Function* f = object()->cls->find_method(name);
    PRONG_CHECK(f, kAttribute, "the module '", object()->cls->qualified_name, "' has no method '",
                name, "'");
    return *f;
  }
  // As the signature wants them; defaults filled in.
  std::vector<IValue> bind(const Function& f, const std::vector<Value>& given) const {
    const std::vector<Argument>& wanted = f.schema().arguments;
    std::vector<IValue> args;
    if (object()) args.push_back(archive.root);
    for (const Value& v : given) args.push_back(Access::inner(v));
    PRONG_CHECK(args.size() <= wanted.size(), kType, f.name(), "() takes at most ",
                wanted.size() - (object() ? 1 : 0), " arguments, got ", given.size());
    for (size_t k = 0; k < wanted.size(); ++k) {
      const Argument& a = wanted[k];
      if (k >= args.size()) {
        PRONG_CHECK(a.has_default, kType, f.name(), "() lacks the argument '", a.name, "'");
        args.push_back(a.default_value);
      }
      if (a.type->is(TypeKind::kFloat) && args[k].is_int()) args[k] = IValue(args[k].to_double());
      PRONG_CHECK(exec::is_instance(args[k], *a.type), kType, f.name(), "(): argument '", a.name,
                  "' must be ", a.type, ", not ", name_of(args[k].tag()));
    }
    return args;
  }
  // The object that holds the last name of the path, and the slot.
  IValue& slot(const std::string& path) const {
    Object* at = object();
    PRONG_CHECK(at, kAttribute, "a saved function has no attributes ('", path, "')");
    std::istringstream names(path);
    std::string name;
    std::getline(names, name, '.');
    for (std::string next; std::getline(names, next, '.'); name = next) {
      const IValue& v = at->slot(name);
      at = v.is_object() ? dynamic_cast<Object*>(v.object()) : nullptr;
      PRONG_CHECK(at, kAttribute, "'", name, "' in '", path, "' is no module");
    }
    return at->slot(name);
  }
};

Module Module::load(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  PRONG_CHECK(file, kOs, "cannot read '", path, "': ", std::strerror(errno));
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return from_bytes(bytes.str());
}

Module Module::from_bytes(std::string_view bytes) {
  compile::install();
  Module out;
  out.impl_ = std::make_shared<Impl>(Impl{load_archive(bytes)});
  PRONG_CHECK(out.impl_->object() || out.impl_->archive.function, kRuntime,
              "the archive holds neither a module nor a function");
  return out;
}

Value Module::call(const std::vector<Value>& arguments, const std::string& method) const {
  Function& f = impl_->method(method);
  return Access::outer(exec::run(f, impl_->bind(f, arguments)));
}

Pending Module::fork(const std::vector<Value>& arguments, const std::string& method) const {
  Function& f = impl_->method(method);
  return Access::outer(exec::fork(f, impl_->bind(f, arguments)));
}

std::vector<std::string> Module::methods() const {
  if (!impl_->object()) return {"forward"};
  std::vector<std::string> out;
  for (const auto& [name, f] : impl_->object()->cls->methods()) out.push_back(name);
  return out;
}

std::string Module::signature(const std::string& method) const {
  return impl_->method(method).schema().str();
}

Value Module::attribute(const std::string& path) const { return Access::outer(impl_->slot(path)); }

void Module::set_attribute(const std::string& path, const Value& value) const {
  IValue& slot = impl_->slot(path);
  const IValue& given = Access::inner(value);
  PRONG_CHECK(slot.tag() == given.tag() || slot.is_none() || given.is_none(), kType, "'", path,
              "' holds a ", name_of(slot.tag()), ", not a ", name_of(given.tag()));
  slot = given;
}

Value Pending::wait() const {
  impl_->future->wait();
  return Access::outer(impl_->future->value());
}
bool Pending::is_done() const { return impl_->future->is_done(); }

void set_num_threads(int n) { prong::set_num_threads(n); }
int num_threads() { return prong::num_threads(); }

}  // namespace prong::api
