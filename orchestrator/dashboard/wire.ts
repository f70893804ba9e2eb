/** Constructs the handlers of the routes that E2B's open dashboard calls beside the API. */

import { createDashboardBuilds, type DashboardDeps } from "./builds.ts";
import { createDashboardTags } from "./tags.ts";
import { createDashboardTemplates } from "./templates.ts";

export function createDashboard(deps: DashboardDeps) {
  return {
    dashboardHealth: { dashboardHealth: () => ({ message: "The service is up." }) },
    dashboardBuilds: createDashboardBuilds(deps),
    dashboardTemplates: createDashboardTemplates(deps),
    dashboardTags: createDashboardTags(deps),
  };
}
