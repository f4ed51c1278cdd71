"""A stage for the doctor: clusters as values, played on a real API server in one network namespace.

A `State` (states.py) has the objects of the API server, what a pod meets at each address, the answers of DNS, and the
verdict that the doctor must give. To add one:

- `objects.py` builds objects. `nginx_controller(point(BALANCER))` is a whole controller; an object with the path of
  another one replaces it. BASE has CoreDNS and a node; the State's `plane` is kube-proxy unless it names another one.
- `at` leads addresses to a `Server` or a `Fate` (servers.py). A short circuit is the load balancer's address led to the
  controller's own server; a living load balancer is Server.BALANCER. A new behaviour is a new row in servers.py.
- `expected` is `healthy(...)`, `wrong(ids, ...)` or `not_known(...)`. Where the relay helps, `advice` names its line;
  where it does not, `no_advice=NO_RELAY`. The parts of `advice` are in its order, the best first.
- `denied` takes rights from the doctor's account; `saved` lets it judge a file; `gateways.py` has the Gateway API, and
  `installed.py` a Switchback that is installed, with `dnsproxy` to run it.
- The address of a dead load balancer is Fate.UNREACHABLE or Fate.REFUSED, because Fate.DROPPED and Server.SILENT make
  the doctor wait for seconds. An address that a state does not mention behaves like DROPPED.

The states are in tests/peers, a module and thus a stage for each subject:

- test_doctor_basics.py: one controller, one load balancer;
- test_doctor_answers.py: what DNS answers leads elsewhere;
- test_doctor_addresses.py: shared addresses, several addresses;
- test_doctor_controllers.py: controllers that are hidden, dead, or not reached by their load balancer;
- test_doctor_settings.py: settings for some sources only, absent ones, and ipMode on data planes that ignore it;
- test_doctor_hosts.py: what hosts answer;
- test_doctor_rights.py: rights that a user lacks, a slow API server; test_doctor_outside.py: outside, and files;
- test_doctor_names.py: two families, wildcards, Gateways, many hosts; test_doctor_installed.py: after the installation;
- planned: providers' lines.
"""
