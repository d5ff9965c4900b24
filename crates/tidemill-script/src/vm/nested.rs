//! Nested functions: finds those that a frame may call, and binds the variables that they share with functions around
//! them.
//!
//! In: calls and handles of functions that contain nested functions, or are nested. Out: a [`Nest`] for a frame, with
//! its shared variables bound to the frame's slots. Must hold: NEST-1 of `value/nest.rs`; frames of other functions
//! have no nest.

use super::Interp;
use super::call::Callee;
use super::frame::{Activation, Variable};
use crate::compile::Code;
use crate::error::Flow;
use crate::syntax::ast::Name;
use crate::value::function::Closure;
use crate::value::nest::{Content, Nest};
use crate::value::{Function, Value};
use parking_lot::Mutex;
use rustc_hash::FxHashSet;
use std::sync::Arc;

impl Interp {
    /// Finds a nested function that the innermost frame may call: one inside of its own function, or inside of a
    /// function around that.
    pub(super) fn nested_function(&self, name: &str) -> Option<Callee> {
        let nest = self.frame()?.nest.as_ref()?;
        let found = nest.chain().find_map(|nest| {
            let code = nest.code.sharing.as_ref()?.functions.get(name)?;
            Some((code, nest))
        });
        found.map(|(code, nest)| Callee::Nested(code.clone(), nest.clone()))
    }

    /// Returns the names of all nested functions that a frame may call.
    pub(super) fn nested_names(&self, number: usize) -> Arc<FxHashSet<Name>> {
        let Some(nest) = self.nest_in(number) else { return Arc::default() };
        let functions = nest.chain().filter_map(|nest| nest.code.sharing.as_ref()).map(|sharing| &sharing.functions);
        Arc::new(functions.flat_map(|functions| functions.keys().cloned()).collect())
    }

    /// Returns the shared variables that a frame sees.
    pub(super) fn nest_in(&self, number: usize) -> Option<Arc<Nest>> {
        match self.frames.get(number)? {
            Activation::Code(frame) => frame.nest.clone(),
            Activation::Task(_) => None,
        }
    }

    /// Iterates over the shared variables of all frames.
    pub(super) fn nests_of_frames(&self) -> impl Iterator<Item = &Arc<Nest>> {
        self.frames.iter().filter_map(|activation| match activation {
            Activation::Code(frame) => frame.nest.as_ref(),
            Activation::Task(_) => None,
        })
    }

    /// Binds the shared variables of a function that is entered to its slots, which begin at `base` and hold its
    /// arguments. Returns the nest that the new frame sees: its own if the function contains nested functions,
    /// otherwise the outer one.
    pub(super) fn share(&mut self, code: &Arc<Code>, base: usize, outer: Option<Arc<Nest>>) -> Option<Arc<Nest>> {
        let sharing = code.sharing.as_ref()?;
        for name in &sharing.outer {
            let nest = outer.as_ref().and_then(|nest| nest.chain().nth(name.between));
            if let Some(shared) = nest.and_then(|nest| nest.variables.get(name.place)) {
                self.variables[base + name.slot as usize] = Variable::Shared(shared.clone());
            }
        }
        if sharing.functions.is_empty() {
            return outer;
        }
        let mut variables = Vec::with_capacity(sharing.owned.len());
        for &slot in &sharing.owned {
            let variable = &mut self.variables[base + slot as usize];
            let content = match std::mem::take(variable) {
                Variable::Value(value) => Content::Value(value),
                _ => Content::Nothing,
            };
            let shared = Arc::new(Mutex::new(content));
            *variable = Variable::Shared(shared.clone());
            variables.push(shared);
        }
        let nest = Arc::new(Nest { code: code.clone(), variables, parent: outer });
        self.nests.add(&nest);
        Some(nest)
    }

    /// Pushes a handle of a nested function. The handle holds the variables that the function shares.
    pub(super) fn nested_handle(&mut self, name: u32) -> Flow<()> {
        let name = self.code().consts[name as usize].as_text().unwrap_or_default();
        let Some(Callee::Nested(code, nest)) = self.nested_function(&name) else {
            return Err(self.undefined(&name).into());
        };
        let closure = Closure { code, captured: Vec::new(), nest: Some(nest) };
        self.stack.push(Value::Function(Arc::new(Function::Anonymous(Arc::new(closure)))));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::source::Source;
    use crate::vm::{End, Interp, drive};
    use crate::{compile, rig, syntax};
    use futures::executor::block_on;
    use std::sync::Arc;

    /// Returns the script's output, followed by its error's message.
    fn printed(text: &str) -> String {
        let (env, printed) = rig::env_with(Default::default());
        let unit = syntax::parse(&Source::new("test", text)).and_then(|file| compile::compile(&file, true));
        let unit = match unit {
            Ok(unit) => unit,
            Err(error) => return error.message,
        };
        let mut interp = Interp::new(env);
        interp.begin(&unit);
        let end = block_on(drive(&mut interp));
        let out = String::from_utf8_lossy(&printed.lock().out).into_owned();
        match end {
            End::Failed(error) => out + &error.message,
            _ => out,
        }
    }

    #[test]
    fn a_nested_function_and_the_one_around_it_see_the_same_variable() {
        let text = "parent ();
            function parent ()
              nested ();
              function nested (), x = 5; end
              x = x + 1; nested2 (); printf ('%d', x);
              function nested2 (), x(end+1) = 7; x(1) *= 10; end
            end";
        assert_eq!(printed(text), "607");
    }

    #[test]
    fn variables_that_the_function_around_them_does_not_mention_are_their_own() {
        let text = "parent ();
            function parent ()
              y = 0; one (); printf ('%d %d', exist ('hidden'), y);
              function one (), hidden = 1; y++; two (); printf ('%d ', hidden); end
              function two (), hidden = 7; y += 10 * hidden; end
            end";
        assert_eq!(printed(text), "1 0 71");
    }

    #[test]
    fn parameters_and_outputs_are_the_nested_function_s_own() {
        let text = "parent ();
            function parent ()
              x = 1; y = 2; z = nested (30); printf ('%d %d %d', x, y, z);
              function y = nested (x), y = x + 1; x = 9; end
            end";
        assert_eq!(printed(text), "1 2 31");
    }

    #[test]
    fn every_call_has_variables_of_its_own_which_its_handles_keep() {
        let text = "[a, b] = deal (counter (10), counter (0));
            printf ('%d %d %d %d ', a (1), a (2), b (5), a (0));
            c = a; printf ('%d %d %d %s', c (1), isequal (a, c), isequal (a, b), func2str (a));
            function f = counter (n)
              f = @add;
              function v = add (by), n = n + by; v = n; end
            end";
        assert_eq!(printed(text), "11 13 5 13 14 1 0 add");
    }

    #[test]
    fn recursion_of_the_outer_function_makes_new_variables_and_that_of_the_nested_one_does_not() {
        let text = "printf ('%d %d', outer (4), depth (5));
            function r = outer (n)
              total = n;
              if n > 0, add (outer (n - 1)); end
              r = total;
              function add (k), total += k; end
            end
            function r = depth (n)
              calls = 0; go (n); r = calls;
              function go (k), calls++; if k > 0, go (k - 1); end, end
            end";
        assert_eq!(printed(text), "10 6");
    }

    #[test]
    fn functions_nested_in_nested_ones_see_all_of_the_variables_around_them() {
        let text = "printf (' %d', levels (1000));
            function r = levels (a)
              b = 1; r = first (2); printf ('%d %d', a, b);
              function r = first (c)
                d = c + b; r = second (3) + d;
                function r = second (e), b = b + e; d = d * 10; a = a + 100; r = d + a; third (); end
                function third (), b = -b; sibling (); end
              end
              function sibling (), a++; end
            end";
        assert_eq!(printed(text), "1101 -4 1160");
    }

    #[test]
    fn anonymous_functions_take_values_and_call_nested_functions() {
        let text = "f = parent (); printf ('%d %d %d', f{1} (), f{2} (), f{1} ());
            function f = parent ()
              n = 1; f = {@() n + next (), @() next ()};
              function v = next (), n++; v = n; end
            end";
        assert_eq!(printed(text), "3 3 5");
    }

    #[test]
    fn handles_of_nested_functions_serve_where_functions_are_called() {
        let text = "parent ();
            function parent ()
              calls = 0; x = fzero (@f, [0 2]);
              printf ('%.4f %d ', x, calls > 3);
              printf ('%d ', cellfun (@twice, {1, 2}), arrayfun (@(k) twice (k), 3), feval (@twice, 4), feval ('twice', 5));
              [a, b] = vary (1, 2); printf ('%d %d %d %d', a, b, nargin (@vary), nargout (@twice));
              function y = f (x), calls++; y = x ^ 2 - 2; end
              function y = twice (x), y = 2 * x; end
              function varargout = vary (varargin)
                for k = 1:nargout, varargout{k} = varargin{k} * numel (varargin); end
              end
            end";
        assert_eq!(printed(text), "1.4142 1 2 4 6 8 10 2 4 -1 1");
    }

    #[test]
    fn loops_globals_and_clear_work_on_shared_variables() {
        let text = "parent (); global G, printf ('%d', G);
            function parent ()
              global G
              G = 3; k = 0; s = 0;
              for k = 1:3, body (); end
              printf ('%d %d ', k, s);
              clear s; printf ('%d ', exist ('s')); again (); printf ('%d ', s);
              function body (), s += k; G++; if k == 3, k = 30; end, end
              function again (), s = 8; end
            end";
        assert_eq!(printed(text), "30 6 0 8 6");
        let text = "parent ();
            function parent ()
              for t = 1:3, printf ('%d', count ()); end
              function n = count (), persistent p = 0; p++; n = p; end
            end";
        assert_eq!(printed(text), "123");
    }

    #[test]
    fn texts_see_the_variables_that_the_function_names_and_add_none() {
        let text = "parent ();
            function parent ()
              x = 1; nested (); printf ('%d ', x);
              eval ('x = x + 1;'); eval ('nested ()'); h = eval ('@nested'); h (); printf ('%d ', x);
              eval ('y = 1;');
              function nested (), x *= 10; end
            end";
        assert_eq!(printed(text), "10 1100 can not add variable \"y\" to a static workspace");
        let text = "parent ();
            function parent (), other (); function nested (), end, end
            function other (), assignin ('caller', 'z', 1); end";
        assert_eq!(printed(text), "can not add variable \"z\" to a static workspace");
    }

    #[test]
    fn what_is_wrong_with_nested_functions_is_said_before_they_run() {
        let twice = "function f (), function g (), end, function g (), end, end";
        assert_eq!(printed(twice), "nested function 'g' is defined twice in 'f'");
        let global = "f (); function f (), x = 1; function g (), global x, end, end";
        assert!(printed(global).starts_with("'x' is declared global or persistent here"), "{}", printed(global));
        assert_eq!(printed("f (); function f (), end, g ()").split(' ').next(), Some("'g'"));
        let hidden = "f (); g (); function f (), function g (), end, end";
        assert!(printed(hidden).starts_with("'g' undefined"));
    }

    #[test]
    fn an_error_within_a_nested_function_leaves_what_it_did() {
        let text = "parent ();
            function parent ()
              n = 0; try, fails (); catch e, printf ('%s %d ', e.message, n); end
              function fails (), n = 5; error ('no'); end
            end";
        assert_eq!(printed(text), "no 5 ");
    }

    #[test]
    fn calls_whose_handles_lie_in_their_own_variables_leave_nothing() {
        let text = "for k = 1:3000, h = make (k); end, printf ('%d', h ());
            function h = make (n)
              big = n * ones (1, 100); h = @value; self = {h};
              function v = value (), v = big(1) + numel (self); end
            end";
        let (env, out) = rig::env_with(Default::default());
        let unit = compile::compile(&syntax::parse(&Source::new("test", text)).unwrap(), true).unwrap();
        let mut interp = Interp::new(env);
        interp.begin(&unit);
        block_on(drive(&mut interp));
        assert_eq!(String::from_utf8_lossy(&out.lock().out), "3001");
        assert!(interp.nests.living() < 600, "{}", interp.nests.living());
        let kept = interp.nests.any();
        assert!(Arc::strong_count(&kept) > 1);
        drop(interp);
        assert_eq!(Arc::strong_count(&kept), 1, "a nest holds itself after its machine has ended");
    }
}
