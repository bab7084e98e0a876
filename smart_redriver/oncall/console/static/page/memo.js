// A part that is drawn anew only when what it is given has changed: a list has a thousand of them.
import { Component, h } from "preact";

export function memo(Part) {
  return class extends Component {
    shouldComponentUpdate(next) {
      return Object.keys(next).some((name) => next[name] !== this.props[name]);
    }

    render() {
      return h(Part, this.props);
    }
  };
}
